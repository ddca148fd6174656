"""The verb ``scan``: one line a find, in every format, and the value in none; the hook that runs it."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from tests.review.helpers import NAME, REPOSITORY, SECRET, Repo, call, cassette_bytes, city, prek
from toolcassette import __version__

KEY = "sk-proj-" + SECRET + "-0x81kQm0pLw93vTtB2"
CLEAN = cassette_bytes(city("Wuhan"))
FOUND = cassette_bytes(
    city("Wuhan"), call(args=b'{"text":"use %s"}' % KEY.encode(), value=b'{"password":"%s"}' % SECRET.encode())
)
PLACES = [(3, "$.args.text", "openai-key"), (4, "$.value.password", "password")]
LINES = [f"frame {frame}, {path}: {rule}" for frame, path, rule in PLACES]


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path)


def scan(repo, *args, **extra):
    status, out, err = repo.tool("scan", *args, **extra)
    assert SECRET not in out + err
    return status, out, err


def test_text(repo):
    repo.write(CLEAN)
    assert scan(repo, NAME) == (0, "", "")
    repo.write(FOUND, "b.cassette.jsonl")
    status, out, err = scan(repo, ".")
    assert (status, out.splitlines()) == (1, [f"./b.cassette.jsonl: {line}" for line in LINES])
    assert err == "toolcassette: 2 secrets found; close these credentials, and record again\n"


def test_what_is_looked_at(repo):
    """Files by name whatever they are; in folders cassettes and partials; lists; and stdin."""
    repo.write(FOUND, f"deep/{NAME}.partial")
    repo.write(f"OPENAI={KEY}\n".encode(), "deep/.env")
    assert scan(repo, "deep")[1].splitlines() == [f"deep/{NAME}.partial: {line}" for line in LINES]
    assert scan(repo, "deep/.env")[:2] == (1, "deep/.env: frame 0, $: openai-key\n")
    repo.write(b"deep/.env\n", "list")
    assert scan(repo, "--files-from", "list")[:2] == (1, "deep/.env: frame 0, $: openai-key\n")


def test_all_are_looked_at_and_2_beats_1(repo):
    repo.write(FOUND)
    status, out, err = scan(repo, "gone", NAME, "")
    assert (status, len(out.splitlines())) == (2, 2)
    assert "toolcassette: gone: there is no cassette of this name (absent)" in err
    (repo.folder / "empty").mkdir()
    assert scan(repo, "empty")[0] == 2
    assert scan(repo)[0] == 2


def test_rules_of_the_command_line(repo):
    repo.write(cassette_bytes(call(args=b'{"id":"ACME-12345678","pin":"9381"}', value=b'"%s"' % SECRET.encode())))
    assert scan(repo, NAME) == (0, "", "")
    assert scan(repo, NAME, "--redact", "pin", "--redact", "$.id")[1].splitlines() == [
        f"{NAME}: frame 1, $.args.id: id",
        f"{NAME}: frame 1, $.args.pin: pin",
    ]
    status, out, _ = scan(repo, NAME, "--pattern", "ACME-[0-9]{8}")
    assert (status, bool(re.fullmatch(rf"{NAME}: frame 1, \$\.args\.id: pattern-[0-9a-f]{{8}}\n", out))) == (1, True)
    status, out, _ = scan(repo, NAME, "--secret-env", "SHOP", SHOP=SECRET)
    assert (status, out) == (1, f"{NAME}: frame 2, $.value: declared\n")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--pattern", "("), "--pattern is no regular expression"),
        (("--pattern", "x*"), "--pattern matches the empty text"),
        (("--secret-env", "NOT_THERE"), "there is no variable NOT_THERE"),
        (("--secret-env", "SHORT"), "at least 4 characters"),
        (("--redact", "!"), "at least one letter"),
        (("--redact", "$.a["), "is no JSON path"),
        (("--redact", "pin", "--redact", "pin"), "two rules go by the id pin"),
        (("--canary", "x"), "two characters"),
        (("--canary", "plumtree", "."), "--canary takes no PATH"),
    ],
)
def test_wrong_usage(repo, args, words):
    repo.write(CLEAN)
    status, out, err = scan(repo, *args, *(() if "--canary" in args else (NAME,)), SHORT="abc")
    assert (status, out) == (2, "")
    assert words in err


def test_json(repo):
    repo.write(FOUND)
    status, out, err = scan(repo, NAME, "gone", "--format", "json")
    first, second = json.loads(out)
    assert (status, first["ok"], first["exit_status"], first["message"]) == (2, False, 1, None)
    assert [tuple(row.values()) for row in first["findings"]] == PLACES
    assert (second["path"], second["exit_status"], second["findings"]) == ("gone", 2, [])
    assert "absent" in second["message"]
    assert "gone: " in err


def test_github(repo):
    repo.write(FOUND, "a,b.cassette.jsonl")
    status, out, _ = scan(repo, ".", "--format", "github")
    assert (status, out.splitlines()) == (
        1,
        [
            f"::error file=./a%2Cb.cassette.jsonl,line={frame + 1},title=secret found::{line}"
            for (frame, _, _), line in zip(PLACES, LINES, strict=True)
        ],
    )


# -- SARIF ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sarif_schema():
    schema = json.loads((REPOSITORY / "tests/data/sarif/sarif-schema-2.1.0.json").read_text("utf-8"))
    return jsonschema.Draft4Validator(schema)


def sarif(repo, schema, *args):
    status, out, _ = scan(repo, *args, "--format", "sarif")
    log = json.loads(out)
    schema.validate(log)
    (run,) = log["runs"]
    return status, run


def test_sarif_of_findings(repo, sarif_schema):
    repo.write(FOUND, "odd ü%.cassette.jsonl")
    status, run = sarif(repo, sarif_schema, ".", "gone")
    assert status == 2
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("toolcassette", __version__)
    found = []
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        (place,) = result["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "./odd%20%C3%BC%25.cassette.jsonl"
        line = place["physicalLocation"]["region"]["startLine"]
        found.append((line - 1, place["logicalLocations"][0]["fullyQualifiedName"], result["ruleId"]))
    assert found == PLACES
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert "gone" in invocation["toolExecutionNotifications"][0]["message"]["text"]


def test_sarif_of_nothing(repo, sarif_schema):
    repo.write(CLEAN)
    status, run = sarif(repo, sarif_schema, NAME)
    assert (status, run["results"], run["tool"]["driver"]["rules"]) == (0, [], [])
    assert run["invocations"] == [{"executionSuccessful": True}]


def test_the_schema_refuses_what_is_no_sarif(sarif_schema):
    for log in (
        {"version": "2.1.0"},
        {"version": "2.0.0", "runs": []},
        {"version": "2.1.0", "runs": [{"results": []}]},
    ):
        assert not sarif_schema.is_valid(log)


# -- the canary -------------------------------------------------------------------------------------------------------


def test_a_canary(repo):
    assert scan(repo, "--canary", SECRET, "--pattern", "CANARY-[A-Z]+") == (
        0,
        "the canary is found in every form\n",
        "",
    )
    status, out, err = scan(repo, "--canary", SECRET, "--redact", "pin")
    assert status == 1
    assert "overlooked: percent-encoded twice\n" in out
    assert "overlooked: the value of pin" not in out
    assert "would be overlooked in 16 forms: " in err
    assert scan(repo, "--canary", SECRET, "--secret-env", "SHOP", SHOP=SECRET)[0] == 0


# -- what is said of a hostile file -----------------------------------------------------------------------------------

HOSTILE = "a\x1b[31m\u202e\n::error::b"


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_names_from_a_file_are_escaped(repo, form):
    value = json.dumps({HOSTILE: {"password": SECRET}, KEY: {"token": SECRET}}, ensure_ascii=False).encode()
    damaged = b"\n::error::\x1b[31m" + KEY.encode() + b"\x9b\n"
    repo.write(cassette_bytes(call(value=b'{"password":"%s"}' % SECRET.encode())) + value + damaged)
    repo.write(cassette_bytes(call(value=_canonical(value))), "b.cassette.jsonl")
    status, out, err = scan(repo, ".", "--format", form)
    assert status == 1
    assert "\x1b" not in out + err
    assert "\u202e" not in out + err
    if form in ("text", "github"):
        starts = ("./", "::error file=./")[form == "github"]
        assert all(line.startswith(starts) for line in out.splitlines())


def _canonical(value):
    from toolcassette.format import encode_tree

    return encode_tree(json.loads(value), sort=False)


# -- the hook ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def hooked(repo):
    """A repository that uses the hook of this one; only that it need not be installed first is set otherwise."""
    manifest = Repo(repo.home, "manifest")
    manifest.commit((REPOSITORY / ".pre-commit-hooks.yaml").read_bytes(), ".pre-commit-hooks.yaml")
    commit = manifest.git("rev-parse", "HEAD").stdout.decode().strip()
    hooks = "hooks:\n      - id: toolcassette-scan\n        language: system\n"
    repo.write(
        f"repos:\n  - repo: {manifest.folder}\n    rev: {commit}\n    {hooks}".encode(), ".pre-commit-config.yaml"
    )
    return repo


def test_the_hook_scans_what_is_staged(hooked):
    hooked.write(CLEAN)
    hooked.write(FOUND, "other.jsonl")  # no cassette by its name
    hooked.git("add", "-A")
    done = prek(hooked, "run")
    assert done.returncode == 0, done.stdout
    assert re.search(r"^scan cassettes for secrets\.+Passed$", done.stdout, re.MULTILINE)
    for name in (f"deep/{NAME}", f"{NAME}.partial", "kept.cassette.md"):
        hooked.write(FOUND, name)
    hooked.git("add", "-A", "-f")
    done = prek(hooked, "run")
    assert done.returncode == 1
    for name in (f"deep/{NAME}", f"{NAME}.partial", "kept.cassette.md"):
        assert f"{name}: {LINES[0]}" in done.stdout
    assert "other.jsonl" not in done.stdout
    assert SECRET not in done.stdout + done.stderr
