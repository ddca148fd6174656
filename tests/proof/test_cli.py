"""Keys and signatures on the command line: each verb, each exit status, and the policy of a revision."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess

import pytest

import toolcassette as tc
from tests.cli.helpers import NAME, bodies, program, record, replay, run
from tests.proof.helpers import Keys, cassette_bytes, judged, put, sidecar
from tests.review.helpers import Repo
from toolcassette.crypto import Signer, VerifierKey


def talk(done):
    return done.stderr.replace("toolcassette: ", "")


# -- keygen ------------------------------------------------------------------------------------------------------------


def test_keygen(tmp_path):
    done = run(tmp_path, "keygen", "ci.key", "--name", "ci.example/recorder")
    assert done.returncode == 0
    assert talk(done) == "made ci.key and ci.key.pub\n"
    key = VerifierKey.parse(done.stdout.strip())
    assert key.name == "ci.example/recorder"
    assert (tmp_path / "ci.key.pub").read_text("utf-8") == done.stdout
    assert Signer.parse((tmp_path / "ci.key").read_bytes()).verifier == key
    assert stat.S_IMODE((tmp_path / "ci.key").stat().st_mode) == 0o600


def test_keygen_overwrites_nothing(tmp_path):
    for taken in ("ci.key", "ci.key.pub"):
        (tmp_path / taken).write_text("mine", "utf-8")
        done = run(tmp_path, "keygen", "ci.key", "--name", "ci")
        assert done.returncode == 2
        assert f"{taken} exists already" in done.stderr
        assert (tmp_path / taken).read_text("utf-8") == "mine"
        assert [path.name for path in tmp_path.iterdir()] == [taken]
        (tmp_path / taken).unlink()


def test_keygen_follows_no_link(tmp_path):
    (tmp_path / "ci.key").symlink_to(tmp_path / "elsewhere")
    assert run(tmp_path, "keygen", "ci.key", "--name", "ci").returncode == 2
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["k"], "give --name"),
        (["k", "--name", "a", "--encryption"], "give --name"),
        (["k", "--name", "a b"], "printable text"),
        (["no/such/folder/k", "--name", "a"], "could not write no/such/folder/k.pub: ENOENT"),
    ],
)
def test_keygen_says_what_is_wrong(tmp_path, args, said):
    done = run(tmp_path, "keygen", *args)
    assert done.returncode == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


# -- sign, verify ------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.cassette.jsonl").write_bytes(cassette_bytes(name))
    return tmp_path


def test_sign_and_verify(folder, keys):
    done = run(folder, "sign", ".", "--key", keys.private("ci"))
    assert (done.returncode, done.stdout) == (
        0,
        "./a.cassette.jsonl: signed by ci.example/key\n./b.cassette.jsonl: signed by ci.example/key\n",
    )
    done = run(folder, "verify", ".", "--key", keys.public("ci"), "--require-signature")
    assert done.returncode == 0
    assert done.stdout.count("intact, signed by ci.example/key (4 frames, 1 call, head ") == 2
    assert run(folder, "verify", ".", "--key", keys.vkey("ci"), "--threshold", "1").returncode == 0
    done = run(folder, "sign", "a.cassette.jsonl", "--key", keys.private("ci"))
    assert (done.returncode, done.stdout) == (0, "a.cassette.jsonl: ci.example/key had signed it\n")
    done = run(folder, "sign", "a.cassette.jsonl", TOOLCASSETTE_SIGNING_KEY=keys.private("ann"))
    assert (done.returncode, done.stdout) == (0, "a.cassette.jsonl: signed by ann.example/key too\n")
    both = ("--key", keys.vkey("ci"), "--key", keys.vkey("ann"), "--threshold", "2")
    assert run(folder, "verify", "a.cassette.jsonl", *both).returncode == 0
    done = run(folder, "verify", ".", *both)
    assert done.returncode == 1
    assert "./b.cassette.jsonl: not proven: fewer trusted keys signed than are required (signature_threshold)" in (
        done.stdout
    )


def test_every_input_is_signed_that_can_be(folder, keys):
    (folder / "a.cassette.jsonl").write_bytes(b"{}\n")
    done = run(folder, "sign", ".", "gone", "--key", keys.private("ci"))
    assert done.returncode == 2
    assert done.stdout == "./b.cassette.jsonl: signed by ci.example/key\n"
    assert "./a.cassette.jsonl: " in done.stderr
    assert "gone: there is no cassette of this name (absent)" in done.stderr
    assert run(folder, "sign", ".", "--key", keys.private("ci")).returncode == 1


def test_sign_needs_a_key_and_files(folder, keys):
    done = run(folder, "sign", ".")
    assert done.returncode == 2
    assert "missing option '--key'" in done.stderr
    done = run(folder, "sign", "-", "--key", keys.private("ci"), stdin="")
    assert done.returncode == 2
    done = run(folder, "sign", ".", "--key", keys.public("ci"))
    assert done.returncode == 2
    assert "(key_unusable)" in done.stderr


def test_sign_replace(folder, keys):
    file = put(folder / "a.cassette.jsonl", cassette_bytes("a"), keys.signer("ci"))
    file.write_bytes(cassette_bytes("other"))
    done = run(folder, "sign", file.name, "--key", keys.private("ci"))
    assert done.returncode == 1
    assert "(signature_stale)" in done.stderr
    done = run(folder, "sign", file.name, "--key", keys.private("ci"), "--replace")
    assert done.returncode == 0
    assert judged(file, keys.vkey("ci")) == "signed"


def test_what_verify_says_of_each_signature(folder, keys):
    file = put(folder / "a.cassette.jsonl", cassette_bytes("a"), keys.signer("ci"))

    def said(*args, **env):
        done = run(folder, "verify", file.name, *args, **env)
        return done.returncode, (done.stdout + done.stderr).split(": ", 1)[1].partition(" (")[0].partition(";")[0]

    assert said() == (0, "intact, signature not checked: no key is trusted here")
    assert said("--key", keys.vkey("ann")) == (1, "not proven: no trusted key made this signature")
    assert said("--require-signature")[0] == 2
    assert said("--key", "junk+00000000+AAAA")[0] == 2
    assert said("--key", "gone.pub") == (2, "a key file cannot be read")
    assert said(TOOLCASSETTE_TRUSTED_KEYS=keys.vkey("ci")) == (0, "intact, signed by ci.example/key")
    assert said(TOOLCASSETTE_TRUSTED_KEYS=keys.vkey("ann"))[0] == 1
    assert said("--key", keys.vkey("ci"), TOOLCASSETTE_TRUSTED_KEYS=keys.vkey("ann"))[0] == 0
    assert said("--threshold", "17")[0] == 2
    assert said(TOOLCASSETTE_REQUIRE_SIGNATURE="maybe")[0] == 2
    sidecar(file).unlink()
    assert said("--key", keys.vkey("ci")) == (0, "intact, unsigned")
    assert said("--key", keys.vkey("ci"), "--require-signature") == (
        1,
        "not proven: there is no signature, and one is required",
    )
    assert said("--key", keys.vkey("ci"), TOOLCASSETTE_REQUIRE_SIGNATURE="1")[0] == 1


def test_verify_as_json_and_for_github(folder, keys):
    file = put(folder / "a.cassette.jsonl", cassette_bytes("a"), keys.signer("ci"))
    done = run(folder, "verify", file.name, "--key", keys.vkey("ci"), "--format", "json")
    (report,) = json.loads(done.stdout)
    assert (report["ok"], report["signed"], report["signers"]) == (True, True, ["ci.example/key"])
    done = run(folder, "verify", file.name, "--key", keys.vkey("ann"), "--format", "github")
    assert done.stdout.startswith("::error file=a.cassette.jsonl,title=cassette not proven::no trusted key made this")


def test_inspect_names_it(folder, keys):
    put(folder / "a.cassette.jsonl", cassette_bytes("a"), keys.signer("ci"))
    done = run(folder, "inspect", "a.cassette.jsonl", TOOLCASSETTE_TRUSTED_KEYS=keys.vkey("ci"))
    assert done.stdout.startswith("a.cassette.jsonl: intact, signed by ci.example/key\n")
    assert "  signed    yes\n" in done.stdout


def test_inspect_shows_a_whole_cassette_whatever_its_signature_is(folder, keys):
    file = put(folder / "a.cassette.jsonl", cassette_bytes("a"), keys.signer("ci"))
    file.write_bytes(cassette_bytes("other"))
    done = run(folder, "inspect", file.name)
    assert done.returncode == 1
    assert done.stdout.startswith("a.cassette.jsonl: the signature is of another cassette")
    assert "  signed    no\n" in done.stdout


def test_stdin_has_no_signature(folder, keys):
    data = cassette_bytes("a").decode()
    assert run(folder, "verify", "-", "--key", keys.vkey("ci"), stdin=data).returncode == 0
    assert run(folder, "verify", "-", "--key", keys.vkey("ci"), "--require-signature", stdin=data).returncode == 1


def test_ssh_keygen_can_sign_too(folder):
    """The other way that README tells of: the file as a whole, with keys that people have."""
    assert shutil.which("ssh-keygen"), "part of openssh-client"
    ssh = ["ssh-keygen", "-q"]
    subprocess.run([*ssh, "-t", "ed25519", "-N", "", "-f", "id"], cwd=folder, check=True)
    (folder / "allowed").write_text(f"ann@example.org {(folder / 'id.pub').read_text('utf-8')}", "utf-8")
    subprocess.run([*ssh, "-Y", "sign", "-n", "toolcassette", "-f", "id", "a.cassette.jsonl"], cwd=folder, check=True)
    sidecar(folder / "a.cassette.jsonl").rename(folder / "a.sshsig")
    verify = [*ssh, "-Y", "verify", "-n", "toolcassette", "-f", "allowed", "-I", "ann@example.org", "-s", "a.sshsig"]
    for name, status in (("a", 0), ("b", 255)):
        data = (folder / f"{name}.cassette.jsonl").read_bytes()
        assert subprocess.run(verify, cwd=folder, input=data, capture_output=True, check=False).returncode == status


# -- record, replay ----------------------------------------------------------------------------------------------------


def test_record_signs_and_replay_asks_for_it(tmp_path, keys):
    program(tmp_path)
    done = record(tmp_path, "--sign", keys.private("ci"))
    assert done.returncode == 0
    assert talk(done) == f"recorded {NAME} (2 calls)\nsigned {NAME} by ci.example/key\n"
    assert judged(tmp_path / NAME, keys.vkey("ci")) == "signed"
    bodies(tmp_path)
    trusted = ("--key", os.path.relpath(keys.public("ci"), tmp_path), "--require-signature")
    assert replay(tmp_path, *trusted).returncode == 0
    assert replay(tmp_path, TOOLCASSETTE_TRUSTED_KEYS=keys.vkey("ci")).returncode == 0
    done = replay(tmp_path, "--key", keys.vkey("ann"))
    assert done.returncode == 1
    assert "(signature_unknown)" in done.stderr
    sidecar(tmp_path / NAME).unlink()
    done = replay(tmp_path, *trusted)
    assert done.returncode == 1
    assert "(signature_missing)" in done.stderr
    assert replay(tmp_path, "--require-signature").returncode == 2
    assert bodies(tmp_path) == []


def test_record_refuses_before_the_command_runs(tmp_path, keys):
    program(tmp_path)
    assert record(tmp_path, "--sign", "gone").returncode == 2
    sidecar(tmp_path / NAME).write_bytes(b"left behind")
    done = record(tmp_path, "--sign", keys.private("ci"))
    assert done.returncode == 2
    assert "the signature exists already" in done.stderr
    assert bodies(tmp_path) == []
    assert record(tmp_path, "--sign", keys.private("ci"), "--replace").returncode == 0
    assert judged(tmp_path / NAME, keys.vkey("ci")) == "signed"


def test_record_again_says_that_the_signature_is_stale(tmp_path, keys):
    program(tmp_path)
    assert record(tmp_path, "--sign", keys.private("ci")).returncode == 0
    program(tmp_path, "weather('Oslo')")
    done = record(tmp_path, "--replace")
    assert done.returncode == 0
    assert "note: the signature beside the cassette is of the one that was replaced" in done.stderr
    done = run(tmp_path, "ls")
    assert done.returncode == 1
    assert done.stdout.splitlines()[1].split()[:2] == ["not", "proven"]


def test_record_of_a_command_that_makes_no_call(tmp_path, keys):
    program(tmp_path, "pass")
    assert record(tmp_path, "--sign", keys.private("ci"), "--allow-empty", "--no-strict-include").returncode == 0
    assert judged(tmp_path / NAME, keys.vkey("ci")) == "signed"


def test_the_command_does_not_learn_the_key(tmp_path, keys):
    program(tmp_path, "weather('Wuhan'); print(*os.environ.values())")
    done = record(tmp_path, "--sign", keys.private("ci"))
    assert done.returncode == 0
    assert keys.private("ci") not in done.stdout


# -- the policy of a revision ------------------------------------------------------------------------------------------

FILES = {
    "pytest.toml": "[pytest]\ntoolcassette_require_signature = '{number}'\ntoolcassette_trusted_keys = ['{keys}']\n",
    "./pyproject.toml": (
        "[tool.pytest]\ntoolcassette_require_signature = true\ntoolcassette_trusted_keys = ['{keys}']\n"
    ),
    "pytest.ini": "[pytest]\ntoolcassette_require_signature = {number}\ntoolcassette_trusted_keys =\n    {keys}\n",
    "pyproject.toml": (
        "[tool.pytest.ini_options]\ntoolcassette_require_signature = {number}\ntoolcassette_trusted_keys = ['{keys}']\n"
    ),
    "tox.ini": "[pytest]\ntoolcassette_require_signature = {number}\ntoolcassette_trusted_keys = {keys}\n",
    "setup.cfg": "[tool:pytest]\ntoolcassette_require_signature = {number}\ntoolcassette_trusted_keys = {keys}\n",
}


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path)


def committed(repo, **files):
    for name, text in files.items():
        path = repo.folder / name.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "x")


@pytest.mark.parametrize("name", FILES)
def test_a_change_that_empties_the_keys_still_fails(repo, name):
    keys = Keys(repo.home / "keys")
    text = FILES[name].format(number=1, keys=keys.vkey("ci"))
    (repo.folder / name).write_text(text, "utf-8")
    put(repo.folder / NAME, cassette_bytes("sun"), keys.signer("ci"))
    committed(repo)
    assert repo.tool("verify", NAME, "--policy-from", "main")[0] == 0
    # The change: another cassette, hashes made anew, no signature; and nobody is trusted any more.
    (repo.folder / NAME).write_bytes(cassette_bytes("storm"))
    sidecar(repo.folder / NAME).unlink()
    (repo.folder / name).write_text("[tool]\n" if name.endswith("toml") else "", "utf-8")
    repo.git("checkout", "-q", "-b", "change")
    committed(repo)
    assert repo.tool("verify", NAME)[0] == 0
    status, out, _ = repo.tool("verify", NAME, "--policy-from", "main")
    assert status == 1
    assert "(signature_missing)" in out
    # Or: it is signed by the author of the change, who trusts himself.
    put(repo.folder / NAME, cassette_bytes("storm"), keys.signer("eve"))
    (repo.folder / name).write_text(FILES[name].format(number=1, keys=keys.vkey("eve")), "utf-8")
    committed(repo)
    assert repo.tool("verify", NAME, "--policy-from", "change")[0] == 0
    status, out, _ = repo.tool("verify", NAME, "--policy-from", "main")
    assert status == 1
    assert "(signature_unknown)" in out


def test_files_of_keys_are_read_from_the_revision(repo):
    keys = Keys(repo.home / "keys")
    committed(
        repo,
        pytest__ini="[pytest]\ntoolcassette_trusted_keys = keys/ci.pub\n",
        **{"keys/ci__pub": f"{keys.vkey('ci')}\n"},
    )
    put(repo.folder / NAME, cassette_bytes("sun"), keys.signer("eve"))
    committed(repo, **{"keys/ci__pub": f"{keys.vkey('eve')}\n"})
    assert repo.tool("verify", NAME, "--policy-from", "HEAD")[0] == 0
    assert repo.tool("verify", NAME, "--policy-from", "HEAD~1")[0] == 1
    put(repo.folder / NAME, cassette_bytes("sun"), keys.signer("ci"))
    below = repo.folder / "keys"
    assert repo.tool("verify", f"../{NAME}", "--policy-from", "HEAD~1", cwd=below)[0] == 0


def test_a_policy_of_two_keys_and_what_goes_before_it(repo):
    keys = Keys(repo.home / "keys")
    two = f"{keys.vkey('ci')}\n    {keys.vkey('ann')}"
    committed(repo, pytest__ini=FILES["pytest.ini"].format(number=2, keys=two))
    put(repo.folder / NAME, cassette_bytes("sun"), keys.signer("ci"))
    judge = ("verify", NAME, "--policy-from", "HEAD")
    status, out, _ = repo.tool(*judge)
    assert (status, "(signature_threshold)" in out) == (1, True)
    put(repo.folder / NAME, cassette_bytes("sun"), keys.signer("ci"), keys.signer("ann"))
    assert repo.tool(*judge)[0] == 0
    assert repo.tool(*judge, TOOLCASSETTE_REQUIRE_SIGNATURE="1")[0] == 0  # of the keys that the policy trusts
    eve = f"{keys.vkey('eve')} {keys.vkey('ci')}"
    assert repo.tool(*judge, TOOLCASSETTE_TRUSTED_KEYS=eve)[0] == 1  # one of two: what the policy requires stays


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "(key_missing)"),
        ({"pytest__ini": "[pytest]\naddopts = -q\n"}, "(key_missing)"),
        ({"pytest__ini": "[pytest]\ntoolcassette_trusted_keys =\n"}, "(key_missing)"),
        ({"pytest__ini": "[pytest]\ntoolcassette_trusted_keys = a+00000000+AAAA\n"}, "(key_junk)"),
        ({"pytest__ini": "[pytest]\ntoolcassette_trusted_keys = gone.pub\n"}, "gone.pub, which should hold keys"),
        ({"pytest__ini": "[pytest]\ntoolcassette_require_signature = maybe\n"}, "toolcassette_require_signature"),
        ({"pytest__ini": b"[pytest\n"}, "could not read pytest.ini"),
        ({"pyproject__toml": b"\xff"}, "could not read pyproject.toml"),
        ({"pyproject__toml": b"tool = 5"}, "could not read pyproject.toml"),
    ],
)
def test_a_revision_without_a_policy_cannot_judge(repo, files, said):
    committed(repo, a="a", **files)
    (repo.folder / NAME).write_bytes(cassette_bytes("sun"))
    status, _, err = repo.tool("verify", NAME, "--policy-from", "HEAD")
    assert status == 2
    assert said in err


def test_an_unknown_revision(repo):
    committed(repo, a="a")
    assert repo.tool("verify", ".", "--policy-from", "gone")[0] == 2
    assert repo.tool("verify", ".", "--policy-from=--all")[0] == 2


def test_git_does_not_touch_a_signature(repo):
    keys = Keys(repo.home / "keys")
    assert repo.tool("git", "install")[0] == 0
    put(repo.folder / NAME, cassette_bytes("sun"), keys.signer("ci"))
    committed(repo)
    clone = Repo(repo.home, "clone", clone=repo, settings=["core.autocrlf=true"])
    assert judged(clone.folder / NAME, keys.vkey("ci")) == "signed"
    assert tc.verify(clone.folder / NAME).unchecked
