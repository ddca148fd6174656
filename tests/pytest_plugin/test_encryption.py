"""The pytest plugin: cassettes that are encrypted, where the key is and where it is not."""

from __future__ import annotations

import pytest

from toolcassette.crypto import Identity, Signer

pytest_plugins = ("pytester",)

# What a run inside this process loads first is dropped after it, and cryptography cannot be loaded twice.
Signer.parse(Signer.generate("ann").to_bytes()).sign(b"")

TEST = "def test_it():\n    assert weather('Wuhan') == {'degrees': 5}\n"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("TOOLCASSETTE_TRUSTED_KEYS", "TOOLCASSETTE_REQUIRE_SIGNATURE", "TOOLCASSETTE_IDENTITY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def identity(tmp_path):
    made = Identity.generate()
    (tmp_path / "identity").write_bytes(made.to_bytes())
    return made


@pytest.fixture
def encrypted(suite, identity):
    """A suite with one cassette, encrypted."""
    suite.write("test_a.py", TEST)
    config = f"{{'recipients': [{str(identity.recipient)!r}]}}"
    suite.write("conftest.py", f"import pytest\n@pytest.fixture\ndef toolcassette_config():\n    return {config}\n")
    suite.record()
    (path,) = suite.path.rglob("*.cassette.jsonl")
    assert b"Wuhan" not in path.read_bytes()
    return path


def test_with_the_key_it_replays(suite, encrypted, tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLCASSETTE_IDENTITY", str(tmp_path / "identity"))
    result = suite.run("-W", "default")
    result.assert_outcomes(passed=1, warnings=1)
    assert "no trusted key signed it" in result.stdout.str()


def test_without_a_key_it_is_skipped_with_the_reason(suite, encrypted):
    result = suite.run("-rs")
    result.assert_outcomes(skipped=1)
    assert "the cassette is encrypted, and no key is here" in result.stdout.str()


def test_without_a_key_it_fails_where_that_is_asked_for(suite, encrypted):
    suite.write("pytest.ini", "[pytest]\ntoolcassette_missing_key = fail\n")
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert "(identity_missing)" in result.stdout.str()


def test_a_wrong_key_fails(suite, encrypted, tmp_path, monkeypatch):
    (tmp_path / "identity").write_bytes(Identity.generate().to_bytes())
    monkeypatch.setenv("TOOLCASSETTE_IDENTITY", str(tmp_path / "identity"))
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert "(identity_wrong)" in result.stdout.str()


def test_a_damaged_one_fails_without_a_key(suite, encrypted):
    encrypted.write_bytes(encrypted.read_bytes().replace(b'"call":0', b'"call":1', 1))
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert "(hash)" in result.stdout.str()


def test_another_word_is_a_usage_error(suite, encrypted):
    suite.write("pytest.ini", "[pytest]\ntoolcassette_missing_key = later\n")
    assert suite.run().ret == pytest.ExitCode.USAGE_ERROR


def test_no_text_is_kept_in_the_clear_beside_it(suite, encrypted, tmp_path, monkeypatch):
    suite.write("pytest.ini", "[pytest]\ntoolcassette_view = true\n")
    monkeypatch.setenv("TOOLCASSETTE_IDENTITY", str(tmp_path / "identity"))
    suite.run("--toolcassette=rewrite").assert_outcomes(passed=1)
    assert [path.name for path in encrypted.parent.iterdir()] == [encrypted.name]


def test_workers_record_it_once_and_need_no_key(suite, encrypted):
    encrypted.unlink()
    for mode in ("record", "rewrite"):
        result = suite.run_apart(f"--toolcassette={mode}", "-n2", "--dist=each", "-W", "default")
        result.assert_outcomes(passed=2)
        assert b"Wuhan" not in encrypted.read_bytes()
        assert [path.name for path in encrypted.parent.iterdir()] == [encrypted.name]
