"""In CI: annotations and the rest of them, the hook for pre-commit, and the workflow of README.md, all run."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.review.helpers import NAME, REPOSITORY, SECRET, Repo, call, cassette_bytes, city, environment, prek

GOOD = cassette_bytes(city("Wuhan"), city("Paris", SECRET))
BAD = GOOD.replace(b"Paris", b"Pariz")  # frame 3, so line 4


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path)


# -- verify --format github ------------------------------------------------------------------------------------------


def annotated(repo, count):
    """Status, annotations and step summary of a run over so many bad cassettes and a good one."""
    for number in range(count):
        repo.write(BAD, f"{number:02}.cassette.jsonl")
    repo.write(GOOD, "zz.cassette.jsonl")
    summary = repo.home / "summary.md"
    summary.write_text("# Before\n", "utf-8")
    status, out, err = repo.tool("verify", "--format", "github", ".", GITHUB_STEP_SUMMARY=str(summary))
    assert err == ""
    return status, out.splitlines(), summary.read_text("utf-8")


@pytest.mark.parametrize("count", [0, 1, 10])
def test_ten_findings_are_annotations(repo, count):
    status, lines, summary = annotated(repo, count)
    assert (status, len(lines), summary) == (1 if count else 0, count, "# Before\n")
    for number, line in enumerate(lines):
        assert line.startswith(
            f"::error file=./{number:02}.cassette.jsonl,line=4,title=cassette damaged::the bytes of "
        )


def test_the_rest_is_in_the_summary(repo):
    status, lines, summary = annotated(repo, 13)
    assert (status, len(lines)) == (1, 13)  # all are in the log
    assert summary.startswith(
        "# Before\n### Cassettes\n\n3 findings more than are shown as annotations:\n\n```text\n- ./10."
    )
    assert re.findall(r"^- \./(\d\d)\.cassette\.jsonl: damaged: ", summary, re.MULTILINE) == ["10", "11", "12"]
    assert summary.endswith("\n```\n")
    assert SECRET not in summary + "".join(lines)


def test_no_name_ends_the_block_of_the_summary(repo):
    for name in ("```.cassette.jsonl", "\n```\n::error::x.cassette.jsonl"):
        repo.write(BAD, f"zz/{name}")
    _, lines, summary = annotated(repo, 10)
    assert [line for line in summary.split("\n") if line.startswith("```")] == ["```text", "```"]
    assert all(line.startswith("::error file=./") for line in lines)


def test_a_summary_that_cannot_be_written_changes_no_verdict(repo):
    for number in range(11):
        repo.write(BAD, f"{number:02}.cassette.jsonl")
    status, out, err = repo.tool(
        "verify", "--format", "github", ".", GITHUB_STEP_SUMMARY=str(repo.home / "no" / "where")
    )
    assert (status, out.count("::error ")) == (1, 11)
    assert err == "toolcassette: could not write the summary of this step\n"


# -- the hook --------------------------------------------------------------------------------------------------------


@pytest.fixture
def hooked(repo):
    """A repository that uses the hook of this one; only that it need not be installed first is set otherwise."""
    manifest = Repo(repo.home, "manifest")
    manifest.commit((REPOSITORY / ".pre-commit-hooks.yaml").read_bytes(), ".pre-commit-hooks.yaml")
    commit = manifest.git("rev-parse", "HEAD").stdout.decode().strip()
    hooks = "hooks:\n      - id: toolcassette-verify\n        language: system\n"
    config = f"repos:\n  - repo: {manifest.folder}\n    rev: {commit}\n    {hooks}"
    repo.write(config.encode(), ".pre-commit-config.yaml")
    return repo


def test_the_manifest_is_valid(repo):
    assert prek(repo, "validate-manifest", REPOSITORY / ".pre-commit-hooks.yaml").returncode == 0
    repo.write(b"- id: x\n", "bad.yaml")
    assert prek(repo, "validate-manifest", "bad.yaml").returncode != 0


def test_the_hook_judges_the_staged_cassettes(hooked):
    hooked.write(GOOD)
    hooked.write(BAD, "other.jsonl")  # no cassette by its name
    hooked.git("add", "-A")
    done = prek(hooked, "run")
    assert done.returncode == 0
    assert re.search(r"^verify cassettes\.+Passed$", done.stdout, re.MULTILINE)
    hooked.write(BAD, f"deep/{NAME}")
    hooked.git("add", "-A")
    done = prek(hooked, "run")
    assert done.returncode == 1
    assert f"deep/{NAME}: damaged: the bytes of the frame do not match its hash at frame 3 (hash)" in done.stdout
    assert "other.jsonl" not in done.stdout


def test_the_hook_is_skipped_without_cassettes(hooked):
    hooked.write(BAD, f"{NAME}.partial")  # ignored by .gitignore as a rule; no business of the hook
    hooked.git("add", "-A")
    done = prek(hooked, "run")
    assert done.returncode == 0
    assert re.search(r"^verify cassettes.*Skipped$", done.stdout, re.MULTILINE)


# -- the workflow of README.md -----------------------------------------------------------------------------------------

INSTALL = "pip install toolcassette"


def workflow():
    """The workflow as it stands in README.md."""
    page = (REPOSITORY / "README.md").read_text("utf-8")
    (block,) = re.findall(r"^```text\n(# \.github/workflows/cassettes\.yml\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return block


def run_workflow(repo):
    """Run its steps as the runner does. Statuses by step, and the summary."""
    steps = re.findall(r"^ +- run: (.+)$", workflow(), re.MULTILINE)
    assert steps[0] == INSTALL
    (base,) = re.findall(r"^ +BASE: (.+)$", workflow(), re.MULTILINE)
    summary = repo.home / "summary.md"
    summary.unlink(missing_ok=True)
    env = environment(
        repo.home, GITHUB_STEP_SUMMARY=str(summary), BASE=base.replace("${{ github.base_ref }}", "main"), CI="true"
    )
    statuses = [
        subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step], cwd=repo.folder, env=env, capture_output=True
        ).returncode
        for step in steps[1:]
    ]
    return statuses, summary.read_text("utf-8")


def test_the_workflow_posts_what_a_pull_request_changes(repo):
    repo.commit(GOOD)
    clone = Repo(repo.home, "clone", clone=repo)
    assert run_workflow(clone) == ([0, 0], "### Cassettes\n\n1 cassette compared, no difference.\n")
    clone.write(cassette_bytes(city("Wuhan"), call("mail")))
    statuses, summary = run_workflow(clone)
    assert statuses == [0, 0]  # a difference is what the reviewer is to see, not a failure
    assert "#### `./weather.cassette.jsonl`\n\n1 added, 1 removed (1 call unchanged)\n" in summary
    clone.write(BAD)
    assert run_workflow(clone)[0] == [1, 0]


def test_the_workflow_fails_where_it_could_not_compare(repo):
    repo.commit(GOOD)
    statuses, _ = run_workflow(repo)  # no remote: there is no such base
    assert statuses == [0, 1]


def test_no_text_of_a_pull_request_becomes_a_command():
    for line in workflow().splitlines():
        assert "${{" not in line or line.strip().startswith("BASE:")
