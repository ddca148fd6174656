"""The verbs `diff` and `view`: what they say, in each form, with which exit status; and what never gets out."""

from __future__ import annotations

import io
import json
import sys

import pytest
from markdown_it import MarkdownIt

from tests.review.helpers import NAME, REPOSITORY, SECRET, call, cassette_bytes, city
from tests.review.test_view import HOSTILE, UNSAFE
from toolcassette import canonical_json, parse_cassette
from toolcassette.cli import main
from toolcassette.view import view

VECTORS = REPOSITORY / "schemas" / "v1" / "vectors"
W, P = city("Wuhan"), city("Paris", "rain")
OLD = [W, P, call("clock", path=("team",))]
NEW = [city("Wuhan", SECRET), call("clock", path=("team",)), call("mail", args=b'{"to":"%s"}' % SECRET.encode())]


@pytest.fixture
def ask(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*args):
        status = main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return status, out, err

    return run


@pytest.fixture
def files(tmp_path):
    for name, calls in (("old", OLD), ("new", NEW), ("again", OLD)):
        (tmp_path / f"{name}.cassette.jsonl").write_bytes(
            cassette_bytes(*calls, cassette=name.encode().hex().ljust(32, "0"))
        )
    return "old.cassette.jsonl", "new.cassette.jsonl"


# -- diff ------------------------------------------------------------------------------------------------------------


def test_diff_text(ask, files):
    status, out, err = ask("diff", *files)
    assert (status, err) == (1, "")
    assert out.splitlines() == [
        "old.cassette.jsonl -> new.cassette.jsonl: 1 changed, 1 added, 1 removed (1 call unchanged)",
        "  ! changed: weather, path /, ordinal 0",
        "      $.value.sky changed",
        "  - removed: weather, path /, ordinal 1",
        "  + added: mail, path /, ordinal 1",
    ]


def test_diff_of_the_same(ask, files):
    assert ask("diff", "old.cassette.jsonl", "again.cassette.jsonl") == (
        0,
        "old.cassette.jsonl -> again.cassette.jsonl: the same (3 calls)\n",
        "",
    )


def test_diff_markdown(ask, files):
    status, out, _ = ask("diff", *files, "--format", "markdown")
    assert status == 1
    assert out == (
        "### Cassettes\n\n1 cassette compared, 1 different.\n\n"
        "#### `old.cassette.jsonl -> new.cassette.jsonl`\n\n1 changed, 1 added, 1 removed (1 call unchanged)\n\n"
        "```diff\n! changed: weather, path /, ordinal 0\n    $.value.sky changed\n"
        "- removed: weather, path /, ordinal 1\n+ added: mail, path /, ordinal 1\n```\n"
    )
    status, out, _ = ask("diff", "old.cassette.jsonl", "again.cassette.jsonl", "--format", "markdown")
    assert (status, out) == (0, "### Cassettes\n\n1 cassette compared, no difference.\n")


def test_diff_json(ask, files):
    status, out, _ = ask("diff", *files, "--format", "json")
    (row,) = json.loads(out)
    assert status == 1
    assert {k: row[k] for k in ("same", "only", "changed", "added", "removed", "reordered", "unchanged")} == {
        "same": False,
        "only": None,
        "changed": 1,
        "added": 1,
        "removed": 1,
        "reordered": 0,
        "unchanged": 1,
    }
    assert row["calls"][0] == {
        "kind": "changed",
        "boundary": "tool",
        "tool": "weather",
        "old": {"call": 0, "path": [], "ordinal": 0},
        "new": {"call": 0, "path": [], "ordinal": 0},
        "reordered": False,
        "differs": [{"json_path": "$.value.sky", "kind": "changed"}],
    }


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_values_are_shown_only_if_asked_for(ask, files, form):
    assert SECRET not in ask("diff", *files, "--format", form)[1]
    assert SECRET in ask("diff", *files, "--format", form, "--show-values")[1]


def test_null_and_nothing_are_told_apart(ask, tmp_path):
    (tmp_path / "a").write_bytes(cassette_bytes(call(value=b'{"x":1}')))
    (tmp_path / "b").write_bytes(cassette_bytes(call(value=b'{"x":1,"y":null}')))
    out = ask("diff", "a", "b", "--show-values")[1]
    assert "$.value.y added: nothing -> null" in out
    (row,) = json.loads(ask("diff", "a", "b", "--show-values", "--format", "json")[1])
    assert row["calls"][0]["differs"] == [{"json_path": "$.value.y", "kind": "added", "new": None}]


@pytest.mark.parametrize(
    ("header", "calls", "word"),
    [
        ({"order": "any"}, [W], "header differs"),
        ({}, [P, W], "1 reordered"),
        ({}, [W._replace(path=("a",)), P], "-> path /a"),
    ],
)
def test_other_words_of_a_diff(ask, tmp_path, header, calls, word):
    (tmp_path / "a").write_bytes(cassette_bytes(W, P))
    (tmp_path / "b").write_bytes(cassette_bytes(*calls, **header))
    status, out, _ = ask("diff", "a", "b")
    assert status == 1
    assert word in out


def test_a_long_list_of_places_is_cut_in_text_alone(ask, tmp_path):
    (tmp_path / "a").write_bytes(cassette_bytes(call(value=canonical_json(list(range(50))))))
    (tmp_path / "b").write_bytes(cassette_bytes(call(value=canonical_json([-n for n in range(1, 51)]))))
    assert "... and 30 more" in ask("diff", "a", "b")[1]
    (row,) = json.loads(ask("diff", "a", "b", "--format", "json")[1])
    assert len(row["calls"][0]["differs"]) == 50


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        (lambda data: data[:-9], 1, "torn: the file ends inside a frame"),
        (lambda data: data.replace(b"Wuhan", b"Wuhen"), 1, "damaged: the bytes of the frame do not match its hash"),
        (lambda data: None, 2, "absent: there is no cassette of this name"),
    ],
)
def test_half_a_cassette_is_not_compared(ask, files, tmp_path, change, status, said):
    data = change(cassette_bytes(*OLD))
    if data is not None:
        (tmp_path / "bad").write_bytes(data)
    for pair in (("old.cassette.jsonl", "bad"), ("bad", "old.cassette.jsonl")):
        got, out, err = ask("diff", *pair)
        assert (got, out) == (status, "")
        assert f"toolcassette: bad: {said}" in err


@pytest.mark.parametrize(
    "args",
    [(), ("a",), ("a", "b", "c"), ("--base", "-x"), ("--base", "main", "-")],
    ids=lambda args: " ".join(args) or "none",
)
def test_wrong_usage_of_diff(ask, args):
    status, out, err = ask("diff", *args)
    assert (status, out) == (2, "")
    assert "see toolcassette diff --help" in err


def test_a_folder_is_no_cassette(ask, files, tmp_path):
    assert ask("diff", "old.cassette.jsonl", tmp_path)[0] == 2


def test_a_value_that_is_not_canonical_is_told_by_name(ask, files, tmp_path):
    odd = VECTORS / "bulk_white_space.cassette.jsonl"  # its hashes are right
    status, out, err = ask("diff", odd, files[0])
    assert (status, out) == (1, "")
    assert "a value in the frame is not in canonical form" in err
    assert "bulk_white_space.cassette.jsonl: damaged: " in err
    assert ask("view", odd)[0] == 1
    status, out, _ = ask("view", "--textconv", odd)
    assert (status, out.startswith("not a whole cassette: damaged: a value in the frame")) == (0, True)


def test_stdin_is_a_side(ask, files, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / files[1]).read_bytes())))
    status, out, _ = ask("diff", files[0], "-")
    assert status == 1
    assert out.startswith("old.cassette.jsonl -> -: 1 changed")


def test_a_summary_is_never_too_long_and_its_block_is_closed(ask, tmp_path):
    (tmp_path / "a").write_bytes(cassette_bytes())
    (tmp_path / "b").write_bytes(cassette_bytes(*(call("t" * 110, args=b'{"n":%d}' % n) for n in range(9000))))
    status, out, _ = ask("diff", "a", "b", "--format", "markdown")
    assert status == 1
    assert 900_000 < len(out.encode()) < 1_048_576
    assert out.endswith("```\n\n... and more than a summary may hold: run it again where you can see all.\n")
    assert ask("diff", "a", "b")[1].count("\n") == 9001


# -- nothing hostile gets through --------------------------------------------------------------------------------------


def hostile(text, number):
    members = canonical_json({text: number})
    return call(text, args=members, value=members, path=(text,), omitted=(text,), meta=members)


def places(tokens):
    """Where each text of a parsed Markdown page stands: its kind of token, and the text."""
    for token in tokens:
        if token.type == "inline":
            yield from places(token.children)
        elif token.content:
            yield token.type, token.content


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_of_a_file_is_markup_or_reaches_a_terminal_raw(ask, tmp_path, text):
    calls = [hostile(text, 1), call(text), W], [call(text + "x"), W, hostile(text, 2)]
    for name, side in zip("ab", calls, strict=True):
        (tmp_path / name).write_bytes(cassette_bytes(*side, include=[text, name]))
    for form in ("text", "json", "markdown"):
        status, out, err = ask("diff", "a", "b", "--show-values", "--format", form)
        assert (status, err) == (1, "")
        assert not UNSAFE.search(out)
    assert not UNSAFE.search(ask("view", "a")[1])
    markdown = ask("diff", "a", "b", "--show-values", "--format", "markdown")[1]
    kinds = {kind for kind, _ in places(MarkdownIt().parse(markdown))}
    assert kinds == {"text", "code_inline", "fence"}
    said = [content for kind, content in places(MarkdownIt().parse(markdown)) if kind == "text"]
    assert said == ["Cassettes", "1 cassette compared, 1 different.", said[2]]
    assert said[2].startswith("1 changed, ")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_view_is_code_and_headings_to_a_markdown_parser(text):
    page = view(parse_cassette(cassette_bytes(hostile(text, 1), W, include=[text])))
    found = list(places(MarkdownIt().parse(page)))
    assert {content for kind, content in found if kind == "text"} == {
        "Cassette",
        "Made by ",
        ", not to be edited.",
        "call",
    }
    assert {content for kind, content in found if kind == "code_inline"} == {"toolcassette view", "weather"}
    assert {kind for kind, _ in found} == {"text", "code_inline", "code_block"}
    assert len([kind for kind, _ in found if kind == "code_block"]) == 3


def test_a_hostile_file_name_is_a_code_span(ask, tmp_path):
    for name in ("`a`", "``|<b>\n# x"):
        (tmp_path / name).write_bytes(cassette_bytes(W))
    out = ask("diff", "`a`", "``|<b>\n# x", "--format", "markdown")[1]
    assert "no difference" in out
    (tmp_path / "`a`").write_bytes(cassette_bytes(P))
    out = ask("diff", "`a`", "``|<b>\n# x", "--format", "markdown")[1]
    spans = [content for kind, content in places(MarkdownIt().parse(out)) if kind == "code_inline"]
    assert spans == ["`a` -> ``|<b>\\n# x"]


# -- view ------------------------------------------------------------------------------------------------------------


def test_view_prints_the_text(ask, files, tmp_path):
    status, out, err = ask("view", files[0])
    assert (status, err) == (0, "")
    assert out == view(parse_cassette((tmp_path / files[0]).read_bytes()))


def test_view_of_what_is_no_cassette(ask, tmp_path):
    (tmp_path / NAME).write_bytes(cassette_bytes(W)[:-9])
    status, out, err = ask("view", NAME)
    assert (status, out) == (1, "")
    assert "torn" in err
    assert ask("view", "absent")[0] == ask("view", "--textconv", "absent")[0] == 2


def test_textconv_never_fails_on_content(ask, tmp_path):
    data = cassette_bytes(W)
    for bad in (
        data[:-9],
        data.replace(b"sun", b"\x1b\xff\n"),
        b"<<<<<<< HEAD\n",
        b"",
        b"version https://git-lfs",
        data * 2,
    ):
        (tmp_path / NAME).write_bytes(bad)
        status, out, err = ask("view", "--textconv", NAME)
        assert (status, err) == (0, "")
        assert out.startswith("not a whole cassette: ")
        assert not UNSAFE.search(out)
        lines = bad.decode("utf-8", "backslashreplace").replace("\x1b", "\\x1b").split("\n")
        assert out.split("\n")[2:-1] == lines
    (tmp_path / NAME).write_bytes(data)
    assert ask("view", "--textconv", NAME) == ask("view", NAME)


def test_check_of_a_kept_view(ask, files, tmp_path):
    kept = tmp_path / "kept.md"
    kept.write_text(ask("view", files[0])[1], "utf-8")
    assert ask("view", files[0], "--check", "kept.md") == (0, "kept.md: is the view of old.cassette.jsonl\n", "")
    assert ask("view", "again.cassette.jsonl", "--check", "kept.md")[0] == 0  # ids do not count
    status, out, err = ask("view", files[1], "--check", "kept.md")
    assert (status, err) == (1, "")
    assert out.startswith("kept.md: is not the view of new.cassette.jsonl: line ")
    kept.write_bytes(kept.read_bytes().replace(b"\n", b"\r\n"))
    assert ask("view", files[0], "--check", "kept.md")[0] == 0  # git may check it out so


@pytest.mark.parametrize(
    "change", [lambda t: t + "\n", lambda t: t[:-1], lambda t: t.replace("Paris", "Parix"), lambda t: ""]
)
def test_a_changed_view_is_found(ask, files, tmp_path, change):
    (tmp_path / "kept.md").write_text(change(ask("view", files[0])[1]), "utf-8")
    assert ask("view", files[0], "--check", "kept.md")[0] == 1


def test_a_view_that_is_not_there(ask, files):
    status, out, err = ask("view", files[0], "--check", "gone.md")
    assert (status, out) == (2, "")
    assert err == "toolcassette: gone.md: could not read it; make it with toolcassette view old.cassette.jsonl\n"


# -- help ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["diff", "view", "git", "git install"])
def test_help(ask, verb):
    status, out, err = ask(*verb.split(), "--help")
    assert (status, err) == (0, "")
    assert out.startswith(f"Usage: toolcassette {verb} ")


def test_git_alone_is_a_usage_error(ask):
    status, out, err = ask("git")
    assert (status, out) == (2, "")
    assert err == "toolcassette: missing command; see toolcassette git --help\n"
