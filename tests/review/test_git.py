"""Cassettes in a real git repository: what git does to them without `git install`, and with it."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

import toolcassette as tc
from tests.review.helpers import NAME, SECRET, Repo, call, cassette_bytes, city, environment, prek

OURS = cassette_bytes(city("Wuhan"), city("Paris"))
BASE = cassette_bytes(city("Wuhan"), cassette="ba" * 16)
THEIRS = cassette_bytes(city("Wuhan"), city("Rome"), cassette="cd" * 16)


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path)


def judge(repo, name=NAME):
    report = tc.verify(repo.folder / name)
    return report.state, report.reason


@pytest.fixture(params=["without", "with"])
def installed(repo, request):
    """Whether `git install` was run: each corruption is shown both ways."""
    if request.param == "with":
        assert repo.tool("git", "install")[0] == 0
    return request.param == "with"


# -- what git does to a cassette -------------------------------------------------------------------------------------


def test_autocrlf(repo, installed):
    repo.commit(OURS)
    clone = Repo(repo.home, "clone", clone=repo, settings=["core.autocrlf=true"])
    assert judge(clone) == (("complete", None) if installed else ("damaged", "crlf"))
    assert ((clone.folder / NAME).read_bytes() == OURS) is installed
    assert clone.git("status", "--porcelain").stdout == b""  # git sees nothing
    status, out, _ = clone.tool("verify", NAME)
    assert status == (0 if installed else 1)
    assert installed or "line endings were changed to CRLF" in out
    assert installed or "mark the file '-text' in .gitattributes" in out


def test_the_advice_for_crlf_mends_it(repo):
    repo.commit(OURS)
    clone = Repo(repo.home, "clone", clone=repo, settings=["core.autocrlf=true"])
    assert clone.tool("git", "install")[0] == 0
    (clone.folder / NAME).unlink()
    clone.git("checkout", "--", NAME)
    assert judge(clone) == ("complete", None)


def test_ident(repo, installed):
    """`ident` writes the blob's id into `$Id$`; a tool may have returned that text."""
    attributes = repo.folder / ".gitattributes"
    present = attributes.read_text("utf-8") if installed else ""
    attributes.write_text("* ident\n" + present, "utf-8")
    repo.commit(cassette_bytes(call(value=b'"$Id$"')))
    clone = Repo(repo.home, "clone", clone=repo)
    assert judge(clone) == (("complete", None) if installed else ("damaged", "hash"))


def branches(repo, attributes=""):
    """Two branches that both re-recorded; on `main`, ready to merge `theirs`."""
    if attributes:
        file = repo.folder / ".gitattributes"
        present = file.read_text("utf-8") if file.exists() else ""
        file.write_text(attributes + present, "utf-8")
    repo.commit(BASE)
    repo.git("checkout", "-q", "-b", "theirs")
    repo.commit(THEIRS)
    repo.git("checkout", "-q", "main")
    repo.commit(OURS)


def test_merge_union(repo, installed):
    branches(repo, "*.jsonl merge=union\n")
    merged = repo.git("merge", "-q", "theirs", check=False)
    if installed:
        assert merged.returncode == 1
        assert (repo.folder / NAME).read_bytes() == OURS
        assert f"UU {NAME}" in repo.git("status", "--porcelain").stdout.decode()
    else:
        assert merged.returncode == 0  # git is content
        report = tc.verify(repo.folder / NAME)
        assert (report.state, report.reason, report.frame) == ("damaged", "after_complete", 6)


def test_a_merge(repo, installed):
    branches(repo)
    assert repo.git("merge", "-q", "theirs", check=False).returncode == 1
    if installed:
        assert judge(repo) == ("complete", None)
        assert (repo.folder / NAME).read_bytes() == OURS
    else:
        assert judge(repo) == ("damaged", "conflict_markers")
        assert "git checkout --ours FILE" in repo.tool("verify", NAME)[1]
        repo.git("checkout", "--ours", "--", NAME)
    assert judge(repo) == ("complete", None)
    repo.git("checkout", "--theirs", "--", NAME)
    assert (repo.folder / NAME).read_bytes() == THEIRS


FIXERS = """\
[[repos]]
repo = "builtin"
hooks = [{ id = "end-of-file-fixer" }, { id = "trailing-whitespace" }]
"""


@pytest.mark.parametrize(
    ("data", "fixed", "before", "after"),
    [
        (OURS, False, ("complete", None), ("complete", None)),  # nothing to fix in what is whole
        (OURS[:-1], True, ("torn", "final_newline_missing"), ("complete", None)),  # and here the fixer is right
        (OURS[:900], True, ("torn", "torn"), ("damaged", "trailer")),  # it makes a cut look like a line
        (OURS + b"\n", True, ("damaged", "after_complete"), ("complete", None)),
        (b"", False, ("torn", "empty"), ("torn", "empty")),
    ],
    ids=["whole", "no newline", "cut", "empty line", "empty"],
)
def test_fixers(repo, data, fixed, before, after):
    """The hooks end-of-file-fixer and trailing-whitespace, as prek has them: no attribute of git keeps them off."""
    assert repo.tool("git", "install")[0] == 0
    repo.write(data)
    repo.write(FIXERS.encode(), "prek.toml")
    assert judge(repo) == before
    repo.git("add", "-A")
    assert (prek(repo, "run", "--all-files").returncode == 1) is fixed
    assert ((repo.folder / NAME).read_bytes() != data) is fixed
    assert judge(repo) == after


# -- git install -----------------------------------------------------------------------------------------------------

LINE = "*.cassette.jsonl -text -ident -merge diff=toolcassette linguist-generated"
SIGNATURES = "*.cassette.jsonl.sig -text -merge"
SAID = f"""\
.gitattributes: added {LINE}
.gitattributes: added {SIGNATURES}
.gitignore: added *.cassette.jsonl.partial*
git config: set diff.toolcassette.textconv = toolcassette view --textconv
"""


def test_install(repo):
    assert repo.tool("git", "install") == (0, SAID, "")
    assert (repo.folder / ".gitattributes").read_text("utf-8") == f"{LINE}\n{SIGNATURES}\n"
    assert (repo.folder / ".gitignore").read_text("utf-8") == "*.cassette.jsonl.partial*\n"
    for name in (f"{NAME}.partial", f"a/{NAME}.partial.0123abcd"):
        assert repo.git("check-ignore", name).returncode == 0
    assert repo.git("check-ignore", NAME, check=False).returncode == 1
    assert repo.git("check-attr", "linguist-generated", NAME).stdout.endswith(b": set\n")


def test_install_twice_changes_nothing(repo):
    repo.tool("git", "install")
    before = {file: file.read_bytes() for file in (*repo.folder.glob(".git*[es]"), repo.folder / ".git" / "config")}
    assert len(before) == 3
    assert repo.tool("git", "install") == (0, SAID.replace(": added", ": has").replace(": set", ": has"), "")
    assert {file: file.read_bytes() for file in before} == before


def test_install_private(repo):
    repo.tool("git", "install")
    status, out, _ = repo.tool("git", "install", "--private")
    assert status == 0
    assert ".gitignore: added *.cassette.jsonl\n" in out
    assert repo.git("check-ignore", NAME).returncode == 0
    assert (repo.folder / ".gitignore").read_text("utf-8") == "*.cassette.jsonl.partial*\n*.cassette.jsonl\n"


def test_install_works_from_a_folder_below(repo):
    below = repo.folder / "a" / "b"
    below.mkdir(parents=True)
    assert repo.tool("git", "install", cwd=below)[0] == 0
    assert (repo.folder / ".gitattributes").exists()
    assert list(below.iterdir()) == []


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        (b"*.py text\n", b"*.py text\n%s\n%sig\n"),
        (b"*.py text", b"*.py text\n%s\n%sig\n"),
        (b"*.py text\r\n", b"*.py text\r\n%s\r\n%sig\r\n"),
        (b"  %s  \r\n", b"  %s  \r\n%sig\r\n"),
        (b"%sig\n%s\n", b"%sig\n%s\n"),
        (b"", b"%s\n%sig\n"),
    ],
)
def test_install_keeps_what_is_there(repo, present, wanted):
    present, wanted = (
        text.replace(b"%sig", SIGNATURES.encode()).replace(b"%s", LINE.encode()) for text in (present, wanted)
    )
    repo.write(present, ".gitattributes")
    assert repo.tool("git", "install")[0] == 0
    assert (repo.folder / ".gitattributes").read_bytes() == wanted


def test_install_says_where_it_is_overruled(repo):
    repo.write(b"*.jsonl text eol=crlf\n", ".git/info/attributes")
    status, _, err = repo.tool("git", "install")
    assert status == 1
    assert err == (
        "toolcassette: the attribute text is set otherwise for cassettes; "
        "look into .gitattributes and .git/info/attributes\n"
    )


def test_install_follows_no_link(repo, tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"untouched\n")
    (repo.folder / ".gitattributes").symlink_to(outside)
    status, _, err = repo.tool("git", "install")
    assert status == 2
    assert "symbolic link" in err
    assert outside.read_bytes() == b"untouched\n"


def test_install_outside_a_repository(repo, tmp_path):
    for folder, extra in ((tmp_path, {"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}), (repo.folder / ".git", {})):
        status, out, err = repo.tool("git", "install", cwd=folder, **extra)
        assert (status, out) == (2, "")
        assert err == "toolcassette: not in the work tree of a git repository\n"


def test_without_git(repo, tmp_path):
    (tmp_path / "none").mkdir()
    env = {**environment(tmp_path), "PATH": str(tmp_path / "none")}
    for verb in (["git", "install"], ["diff", "--base", "HEAD"]):
        done = subprocess.run(
            [sys.executable, "-m", "toolcassette", *verb], cwd=repo.folder, env=env, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("toolcassette: could not run git; ")


# -- git shows calls -------------------------------------------------------------------------------------------------


def test_git_diff_shows_calls(repo):
    repo.tool("git", "install")
    repo.commit(BASE)
    repo.commit(OURS)
    shown = repo.git("log", "-p", "-1", "--", NAME).stdout.decode()
    assert '+      city: "Paris"' in shown
    assert '"hash"' not in shown
    assert not [line for line in shown.split("\n") if line.startswith("-    ")]  # a call was added, nothing removed


def test_git_diff_survives_a_damaged_cassette(repo):
    repo.tool("git", "install")
    repo.commit(OURS[:-9])
    repo.commit(OURS)
    shown = repo.git("log", "-p", "-1", "--", NAME).stdout.decode()
    assert "-not a whole cassette: torn: the file ends inside a frame" in shown
    assert '+      city: "Paris"' in shown


def test_a_cassette_that_was_recorded_again_without_news_is_no_diff(repo):
    repo.tool("git", "install")
    repo.commit(OURS)
    repo.write(cassette_bytes(city("Wuhan"), city("Paris"), cassette="ef" * 16))
    shown = repo.git("diff", "--", NAME).stdout.decode()
    assert "city" not in shown


# -- diff --base -----------------------------------------------------------------------------------------------------


@pytest.fixture
def history(repo):
    """A revision `base`, and a work tree in which one cassette changed, one is new, one is gone, one is as it was."""
    for name in ("same", "changed", "deep/gone"):
        repo.write(BASE, f"{name}.cassette.jsonl")
    repo.commit()
    repo.git("tag", "base")
    repo.write(cassette_bytes(city("Wuhan", SECRET)), "changed.cassette.jsonl")
    repo.write(OURS, "new.cassette.jsonl")
    repo.write(OURS, "new.cassette.jsonl.partial")
    shutil.rmtree(repo.folder / "deep")
    return repo


ALL = """\
./changed.cassette.jsonl: 1 changed (0 calls unchanged)
  ! changed: weather, path /, ordinal 0
      $.value.sky changed
./deep/gone.cassette.jsonl: the cassette is gone (1 call)
  - removed: weather, path /, ordinal 0
./new.cassette.jsonl: new cassette (2 calls)
  + added: weather, path /, ordinal 0
  + added: weather, path /, ordinal 1
"""


def test_base_compares_the_work_tree(history):
    assert history.tool("diff", "--base", "base") == (1, ALL, "")
    assert history.tool("diff", "--base", "base", ".") == (1, ALL, "")
    assert history.tool("diff", "--base", "base", history.folder / ".")[1].count("cassette.jsonl: ") == 3


@pytest.mark.parametrize(
    ("names", "status", "said"),
    [
        (["same"], 0, "same.cassette.jsonl: the same (1 call)\n"),
        (["same", "changed"], 1, "changed.cassette.jsonl: 1 changed"),
        (["new"], 1, "new.cassette.jsonl: new cassette (2 calls)"),
        (["deep/gone"], 1, "deep/gone.cassette.jsonl: the cassette is gone (1 call)"),
    ],
)
def test_base_with_files(history, names, status, said):
    got, out, err = history.tool("diff", "--base", "base", *(f"{name}.cassette.jsonl" for name in names))
    assert (got, err) == (status, "")
    assert out.startswith(said)


def test_base_from_a_folder_below(history):
    below = history.folder / "sub"
    below.mkdir()
    assert history.tool("diff", "--base", "base", cwd=below) == (0, "", "")
    out = history.tool("diff", "--base", "base", "../changed.cassette.jsonl", cwd=below)[1]
    assert out.startswith("../changed.cassette.jsonl: 1 changed")


def test_base_that_is_not_there(history):
    status, out, err = history.tool("diff", "--base", "gone")
    assert (status, out) == (2, "")
    assert err == "toolcassette: no revision gone here; in a shallow clone, fetch it first\n"
    status, _, err = history.tool("diff", "--base", "base", "nowhere.cassette.jsonl", "changed.cassette.jsonl")
    assert status == 2  # and the other was compared
    assert err == "toolcassette: nowhere.cassette.jsonl: neither here nor in base\n"


def test_a_revision_is_never_an_option(history):
    status, _, err = history.tool("diff", "--base=--all", "same.cassette.jsonl")
    assert status == 2
    assert "a revision does not begin with a dash" in err


def test_damage_on_either_side_is_told(history):
    history.write(BASE[:-9], "same.cassette.jsonl")
    status, _, err = history.tool("diff", "--base", "base", "same.cassette.jsonl")
    assert status == 1
    assert err.startswith("toolcassette: same.cassette.jsonl: torn: ")
    history.commit()
    history.write(BASE, "same.cassette.jsonl")
    status, _, err = history.tool("diff", "--base", "HEAD", "same.cassette.jsonl")
    assert status == 1
    assert err.startswith("toolcassette: same.cassette.jsonl: torn: ")


def test_file_names_of_every_kind(history):
    names = [
        "a b.cassette.jsonl",
        "\u00e4\u6b66.cassette.jsonl",
        "-x.cassette.jsonl",
        "[a]*.cassette.jsonl",
        'q"\n.cassette.jsonl',
    ]
    for name in names:
        history.write(BASE, name)
    history.commit()
    for name in names:
        (history.folder / name).unlink()
    status, out, err = history.tool("diff", "--base", "HEAD")
    assert (status, err) == (1, "")
    assert out.count("the cassette is gone (1 call)") == len(names)
    assert history.tool("diff", "--base", "HEAD", "--", "[a]*.cassette.jsonl")[1].startswith(
        "[a]*.cassette.jsonl: the ca"
    )
