"""The pytest plugin: cassettes that must be signed, by keys that the tree under review cannot choose."""

from __future__ import annotations

import pytest

import toolcassette as tc
from tests.proof.helpers import Keys, judged, sidecar
from toolcassette.crypto import Signer

pytest_plugins = ("pytester",)

# What a run inside this process loads first is dropped after it, and cryptography cannot be loaded twice.
Signer.parse(Signer.generate("ann").to_bytes()).sign(b"")

TEST = "def test_it():\n    assert weather('Wuhan') == {'degrees': 5}\n"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("TOOLCASSETTE_TRUSTED_KEYS", "TOOLCASSETTE_REQUIRE_SIGNATURE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def keys(tmp_path):
    return Keys(tmp_path / "keys")


@pytest.fixture
def signed(suite, keys):
    """A suite with one cassette, signed by ci."""
    suite.write("test_a.py", TEST)
    suite.write(
        "conftest.py",
        f"import pytest\n@pytest.fixture\ndef toolcassette_config():\n    return {{'sign': {keys.private('ci')!r}}}\n",
    )
    suite.record()
    (path,) = suite.path.rglob("*.cassette.jsonl")
    assert judged(path, keys.vkey("ci")) == "signed"
    return path


def configured(suite, number, *keys):
    lines = "".join(f"    {key}\n" for key in keys)
    suite.write(
        "pytest.ini", f"[pytest]\ntoolcassette_require_signature = {number}\ntoolcassette_trusted_keys =\n{lines}"
    )


def failed(suite, reason):
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert f"({reason})" in result.stdout.str()


def test_the_ini_requires_a_signature(suite, signed, keys):
    configured(suite, 1, keys.vkey("ci"))
    suite.run().assert_outcomes(passed=1)
    sidecar(signed).unlink()
    failed(suite, "signature_missing")
    configured(suite, 0, keys.vkey("ci"))
    suite.run().assert_outcomes(passed=1)


def test_a_file_of_keys_lies_below_the_root(suite, signed, keys):
    suite.write("keys/trusted", f"{keys.vkey('ci')}\n{keys.vkey('ann')}\n")
    configured(suite, 1, "keys/trusted")
    suite.run().assert_outcomes(passed=1)
    configured(suite, 2, "keys/trusted")
    failed(suite, "signature_threshold")


def test_a_marker_asks_for_it(suite, signed, keys):
    mark = f"@pytest.mark.toolcassette(trusted_keys=[{keys.vkey('ann')!r}], require_signature=True)\n"
    suite.write("test_a.py", mark + TEST)
    failed(suite, "signature_unknown")


def test_the_environment_goes_before_everything_in_the_tree(suite, signed, keys, monkeypatch):
    monkeypatch.setenv("TOOLCASSETTE_TRUSTED_KEYS", keys.vkey("ci"))
    monkeypatch.setenv("TOOLCASSETTE_REQUIRE_SIGNATURE", "1")
    suite.run().assert_outcomes(passed=1)
    # The author of a change signs with a key of his own, and trusts it in every place that he can write to.
    tc.sign(signed, keys.private("eve"))
    sidecar(signed).unlink()
    tc.sign(signed, keys.private("eve"))
    configured(suite, 0, keys.vkey("eve"))
    mark = f"@pytest.mark.toolcassette(trusted_keys=[{keys.vkey('eve')!r}], require_signature=False)\n"
    suite.write("test_a.py", mark + TEST)
    failed(suite, "signature_unknown")
    sidecar(signed).unlink()
    failed(suite, "signature_missing")
    monkeypatch.setenv("TOOLCASSETTE_TRUSTED_KEYS", "")  # a secret that was not set
    failed(suite, "key_missing")


def test_no_body_runs_where_the_signature_is_not_what_it_should_be(suite, signed, keys):
    configured(suite, 1, keys.vkey("ann"))
    suite.write(
        "test_a.py",
        "def test_it():\n    try:\n        weather('Wuhan')\n    except Exception:\n        pass\n    assert not RUN\n",
    )
    failed(suite, "signature_unknown")


@pytest.mark.parametrize("text", ["maybe", "17x"])
def test_a_number_that_is_none_is_a_usage_error(suite, keys, text):
    suite.write("test_a.py", TEST)
    configured(suite, text, keys.vkey("ci"))
    result = suite.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "toolcassette_require_signature" in result.stderr.str()


def test_a_cassette_that_several_workers_record_is_signed_by_the_one_that_publishes(suite, keys):
    suite.write(
        "test_a.py",
        f"@pytest.mark.toolcassette(sign={keys.private('ci')!r})\n" + TEST,
    )
    result = suite.run_apart("--toolcassette=record", "-n2", "--dist=each", "-pno:cacheprovider")
    result.assert_outcomes(passed=2)
    (path,) = suite.path.rglob("*.cassette.jsonl")
    assert judged(path, keys.vkey("ci")) == "signed"
