"""Signing and what becomes of it: the recorder, the replayer, ``sign``, ``verify``, in files and in memory."""

from __future__ import annotations

import errno
import stat
import subprocess
import sys
from unittest import mock

import pytest

import toolcassette as tc
from tests.proof.helpers import NAME, cassette_bytes, judged, note_over, put, rehashed, sidecar
from toolcassette.crypto import sidecar as sidecar_module
from toolcassette.crypto import survey_cassette
from toolcassette.engine.publication import publish
from toolcassette.stores import FileOps
from toolcassette.surveying import Surveyors, _Worker

tool = tc.Registry().wrap(lambda city: f"sun in {city}", name="weather")


def record(file, *cities, **options):
    with tc.record(file, ["weather"], **options) as session:
        for city in cities or ["Wuhan"]:
            tool(city)
    return session.verdict


def replay(file, *cities, **options):
    with tc.replay(file, **options):
        for city in cities or ["Wuhan"]:
            tool(city)


def reason_of(run, *args, **options):
    with pytest.raises(tc.SignatureError) as caught:
        run(*args, **options)
    return caught.value.reason


# -- the recorder ------------------------------------------------------------------------------------------------------


def test_a_recorder_signs_what_it_published(file, keys):
    assert record(file, sign=keys.private("ci")).outcome == "published"
    assert sidecar(file).read_bytes() == note_over(file.read_bytes(), keys.signer("ci"))
    assert stat.S_IMODE(sidecar(file).stat().st_mode) == 0o600
    report = tc.verify(file, trusted_keys=[keys.vkey("ci")])
    assert (report.signed, report.signers, report.message) == (
        True,
        ("ci.example/key",),
        "intact, signed by ci.example/key",
    )
    replay(file, trusted_keys=[keys.public("ci")], require_signature=True)
    assert sorted(path.name for path in file.parent.glob(f"{NAME}*")) == [NAME, f"{NAME}.sig"]


def test_in_memory_too(keys):
    store = tc.MemoryStore()
    record(NAME, sign=keys.private("ci"), store=store)
    assert tc.verify(NAME, store=store, trusted_keys=[keys.vkey("ci")]).signed
    replay(NAME, store=store, trusted_keys=[keys.vkey("ci")], require_signature=True)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_async_sessions_too(file, keys, anyio_backend):
    async with tc.record(file, ["weather"], sign=keys.private("ci")):
        tool("Wuhan")
    async with tc.replay(file, trusted_keys=[keys.vkey("ci")], require_signature=True):
        tool("Wuhan")


@pytest.mark.parametrize("data", [None, b"", b"junk"])
def test_a_key_that_cannot_sign_is_refused_before_a_body_runs(file, keys, tmp_path, data):
    key = tmp_path / "key"
    if data is not None:
        key.write_bytes(data)
    wanted = "key_unreadable" if data is None else "key_unusable"
    assert reason_of(tc.record, file, ["weather"], sign=str(key)) == wanted
    assert not file.exists()


def test_a_signature_without_its_cassette_is_refused_before_a_body_runs(file, keys):
    record(file, sign=keys.private("ci"))
    file.unlink()
    with pytest.raises(tc.CassetteExists) as caught, tc.record(file, ["weather"], sign=keys.private("ci")):
        pytest.fail("a body could have run")
    assert caught.value.what == "signature"
    record(file, sign=keys.private("ci"), replace=True)
    assert judged(file, keys.vkey("ci")) == "signed"


def test_what_is_not_published_is_not_signed(file, keys):
    with pytest.raises(tc.NotPublished), tc.record(file, ["weather"], sign=keys.private("ci")):
        pass
    assert not sidecar(file).exists()


def test_published_and_not_signed_is_said(file, keys):
    session = tc.record(file, ["weather"], sign=keys.private("ci"))
    with pytest.raises(tc.SignatureError) as caught, session:
        tool("Wuhan")
        sidecar(file).mkdir()
    assert caught.value.reason == "signature_unreadable"
    assert session.verdict is not None
    assert (session.verdict.outcome, session.verdict.ok) == ("published", False)
    assert judged(file) == "signature_unreadable"


def test_a_file_that_is_swapped_before_it_is_signed_is_not_signed(file, keys):
    """Between publishing and signing somebody puts another whole cassette there: we sign what we wrote, or nothing."""
    real = publish

    def swapped(store, spool, *, replace):
        outcome = real(store, spool, replace=replace)
        file.write_bytes(cassette_bytes("storm"))
        return outcome

    with mock.patch("toolcassette.engine.recorder.publish", swapped):
        assert reason_of(record, file, sign=keys.private("ci")) == "head_differs"
    assert not sidecar(file).exists()


# -- recording again ---------------------------------------------------------------------------------------------------


def test_the_same_again_leaves_cassette_and_signature_byte_for_byte(file, keys):
    record(file, sign=keys.private("ci"))
    tc.sign(file, keys.private("ann"))
    before = file.read_bytes(), sidecar(file).read_bytes()
    for key in ("ci", "bob"):
        assert record(file, sign=keys.private(key), replace=True).outcome == "unchanged"
        assert (file.read_bytes(), sidecar(file).read_bytes()) == before
    assert record(file, replace=True).notes == ()


def test_the_same_again_is_signed_where_nobody_had(file, keys):
    record(file)
    assert record(file, sign=keys.private("ci"), replace=True).outcome == "unchanged"
    assert judged(file, keys.vkey("ci")) == "signed"


def test_other_calls_get_a_signature_of_their_own(file, keys):
    record(file, sign=keys.private("ci"))
    tc.sign(file, keys.private("ann"))
    assert record(file, "Oslo", sign=keys.private("ci"), replace=True).outcome == "published"
    assert judged(file, keys.vkey("ci")) == "signed"
    assert judged(file, keys.vkey("ann")) == "signature_unknown"  # she has not seen the new one


def test_other_calls_and_nobody_signs(file, keys):
    record(file, sign=keys.private("ci"))
    verdict = record(file, "Oslo", replace=True)
    assert verdict.outcome == "published"
    assert verdict.ok
    assert "have the new one signed" in verdict.notes[0]
    assert judged(file, keys.vkey("ci")) == judged(file) == "signature_stale"
    assert reason_of(replay, file, "Oslo", trusted_keys=[keys.vkey("ci")]) == "signature_stale"


# -- sign --------------------------------------------------------------------------------------------------------------


def test_sign_and_co_sign(file, keys):
    file.write_bytes(data := cassette_bytes("sun", "rain"))
    assert tc.sign(file, keys.private("ci")) == "signed"
    one = sidecar(file).read_bytes()
    assert tc.sign(file, keys.private("ci")) == "unchanged"
    assert sidecar(file).read_bytes() == one
    assert tc.sign(file, keys.private("ann")) == "co-signed"
    assert sidecar(file).read_bytes() == note_over(data, keys.signer("ci"), keys.signer("ann"))
    assert sidecar(file).read_bytes().startswith(one)  # a line was appended
    assert file.read_bytes() == data
    both = keys.vkey("ci"), keys.vkey("ann")
    assert tc.verify(file, trusted_keys=both, threshold=2).signers == ("ann.example/key", "ci.example/key")


def test_sign_refuses_a_stale_signature_unless_it_is_to_go(file, keys):
    put(file, cassette_bytes("sun"), keys.signer("ci"))
    file.write_bytes(cassette_bytes("rain"))
    before = sidecar(file).read_bytes()
    assert reason_of(tc.sign, file, keys.private("ci")) == "signature_stale"
    assert sidecar(file).read_bytes() == before
    assert tc.sign(file, keys.private("ci"), replace=True) == "replaced"
    assert judged(file, keys.vkey("ci")) == "signed"
    sidecar(file).write_bytes(b"junk")
    assert reason_of(tc.sign, file, keys.private("ci")) == "signature_junk"
    assert tc.sign(file, keys.private("ci"), replace=True) == "replaced"


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda data: data[:-1], "final_newline_missing"),
        (lambda data: data.replace(b'"sun"', b'"fog"'), "hash"),
        (lambda data: b"", "empty"),
    ],
)
def test_only_a_whole_cassette_is_signed(file, keys, spoil, reason):
    file.write_bytes(spoil(cassette_bytes("sun")))
    with pytest.raises(tc.FormatError) as caught:
        tc.sign(file, keys.private("ci"))
    assert caught.value.reason == reason
    assert not sidecar(file).exists()


def test_nobody_signs_what_two_readers_read_in_two_ways(file, keys):
    """Hashes and links fit, and only a look at every value finds it: a duplicate key."""
    lines = cassette_bytes("sun").splitlines(keepends=True)
    lines[1] = lines[1].replace(b'{"city":"c0"}', b'{"city":"c0","city":"c1"}')
    file.write_bytes(rehashed(lines))
    assert tc.verify(file).ok
    with pytest.raises(tc.FormatError) as caught:
        tc.sign(file, keys.private("ci"))
    assert caught.value.reason == "bulk"


def test_of_two_who_sign_at_once_no_line_is_lost(file, keys):
    """The second has read the signature when the first has not written yet."""
    file.write_bytes(data := cassette_bytes("sun"))
    real = sidecar_module.read_signature
    waiting = [lambda: tc.sign(file, keys.private("ann"))]

    def meanwhile(store, name):
        found = real(store, name)
        if waiting:
            waiting.pop()()
        return found

    with mock.patch.object(sidecar_module, "read_signature", meanwhile):
        assert tc.sign(file, keys.private("ci")) == "co-signed"
    assert sidecar(file).read_bytes() == note_over(data, keys.signer("ann"), keys.signer("ci"))

    def inside(store, name):
        """At the second look the partial is there: whoever comes now is refused."""
        looks.append(name)
        if len(looks) == 2:
            with pytest.raises(tc.CassetteExists) as caught:
                tc.sign(file, keys.private("bob"))
            assert caught.value.what == "live_partial"
        return real(store, name)

    looks: list[str] = []
    with mock.patch.object(sidecar_module, "read_signature", inside):
        assert tc.sign(file, keys.private("eve")) == "co-signed"
    assert sorted(path.name for path in file.parent.glob(f"{NAME}*")) == [NAME, f"{NAME}.sig"]


def test_a_disk_that_is_full_leaves_the_signature_that_is_there(file, keys, monkeypatch):
    put(file, cassette_bytes("sun"), keys.signer("ci"))
    before = sidecar(file).read_bytes()

    def full(self, fd, data):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(FileOps, "write", full)
    with pytest.raises(tc.StoreError):
        tc.sign(file, keys.private("ann"))
    monkeypatch.undo()
    assert sidecar(file).read_bytes() == before
    assert tc.sign(file, keys.private("ann")) == "co-signed"


def test_a_partial_is_not_signed(tmp_path, keys):
    partial = tmp_path / f"{NAME}.partial"
    partial.write_bytes(cassette_bytes("sun"))
    with pytest.raises(tc.FormatError) as caught:
        tc.sign(partial, keys.private("ci"))
    assert caught.value.reason == "not_published"


# -- verify ------------------------------------------------------------------------------------------------------------


def test_unsigned_is_said_and_is_no_finding_unless_one_is_required(file, keys):
    file.write_bytes(cassette_bytes("sun"))
    assert judged(file) == judged(file, keys.vkey("ci")) == "unsigned"
    assert tc.verify(file).message == "intact, unsigned"
    assert judged(file, keys.vkey("ci"), require_signature=True) == "signature_missing"
    assert reason_of(tc.verify, file, require_signature=True) == "key_missing"


def test_a_signature_that_nobody_can_check_is_not_called_unsigned(file, keys):
    put(file, cassette_bytes("sun"), keys.signer("ci"))
    report = tc.verify(file)
    assert (report.ok, report.signed, report.unchecked) == (True, False, True)
    assert report.message == "intact, signature not checked: no key is trusted here"


def test_a_report_says_what_is_wrong_with_an_intact_cassette(file, keys):
    put(file, cassette_bytes("sun"), keys.signer("ci"))
    report = tc.verify(file, trusted_keys=[keys.vkey("ann")])
    assert (report.state, report.ok, report.reason, report.exit_status) == ("complete", False, "signature_unknown", 1)
    assert report.message == str(tc.SignatureError("signature_unknown"))


def test_inspect_says_whether_it_is_signed(file, keys, monkeypatch):
    put(file, cassette_bytes("sun"), keys.signer("ci"))
    assert tc.inspect(file).signed is False  # nobody is trusted
    monkeypatch.setenv("TOOLCASSETTE_TRUSTED_KEYS", keys.vkey("ci"))
    assert tc.inspect(file).signed is True
    monkeypatch.setenv("TOOLCASSETTE_TRUSTED_KEYS", keys.vkey("ann"))
    assert tc.inspect(file).signed is False
    sidecar(file).unlink()
    assert tc.inspect(file).signed is False


@pytest.mark.parametrize("broken", [False, True])
def test_side_by_side_workers_find_the_same(file, keys, monkeypatch, broken):
    """The hashes of frames come from child processes; and from here, where the children die."""
    data = put(file, cassette_bytes(*["sun" * 100] * 3000), keys.signer("ci")).read_bytes()
    monkeypatch.setattr(sys.modules["toolcassette.verify"], "SIDE_BY_SIDE_BYTES", 1)
    if broken:
        monkeypatch.setattr(_Worker, "survey", lambda self, run, **_: None)
    used: list[bool] = []
    monkeypatch.setattr(Surveyors, "feed_all", counting(Surveyors.feed_all, used))
    assert judged(file, keys.vkey("ci"), jobs=2) == "signed"
    assert judged(file, keys.vkey("ci"), jobs=2, deep=True) == "signed"
    assert used == [True, True]
    other = cassette_bytes(*["sun" * 100] * 2999, "fog")
    assert len(other) < len(data)
    file.write_bytes(other)
    assert judged(file, keys.vkey("ci"), jobs=2) == "signature_stale"


def counting(real, used):
    def feed_all(self, reader, blocks, **options):
        used.append(options["hashes"])
        return real(self, reader, blocks, **options)

    return feed_all


def test_the_root_is_that_of_the_frame_hashes(file, keys):
    put(file, cassette_bytes("sun", "rain", "fog"), keys.signer("ci"))
    facts = survey_cassette(tc.FileStore(), str(file))
    assert facts.head == tc.verify(file).head
    assert (facts.calls, facts.checkpoint.frames) == (3, 8)
    assert sidecar(file).read_text("utf-8").startswith(facts.checkpoint.text)
    assert facts.checkpoint.text.startswith("toolcassette/1/" + "ab" * 16 + "\n8\n")


# -- replay ------------------------------------------------------------------------------------------------------------


def test_a_replay_that_asks_for_a_signature_serves_nothing_without(file, keys):
    record(file)
    assert reason_of(replay, file, trusted_keys=[keys.vkey("ci")], require_signature=True) == "signature_missing"
    replay(file, trusted_keys=[keys.vkey("ci")])
    replay(file)


def test_a_large_cassette_is_read_on_use_and_judged_all_the_same(file, keys, monkeypatch):
    monkeypatch.setattr("toolcassette.engine.publication.HELD_BYTES", 1)
    record(file, "Wuhan", "Oslo", sign=keys.private("ci"))
    replay(file, "Wuhan", "Oslo", trusted_keys=[keys.vkey("ci")], require_signature=True)
    assert reason_of(replay, file, trusted_keys=[keys.vkey("ann")]) == "signature_unknown"  # and the file is closed
    assert reason_of(replay, file, expect_head="0" * 64) == "head_differs"


def test_the_head_that_is_expected(file):
    record(file)
    head = tc.verify(file).head or ""
    replay(file, expect_head=head)
    assert reason_of(replay, file, expect_head="0" * 64) == "head_differs"
    for wrong in ("", "0" * 63, head.upper() + "0", head + "\n"):
        with pytest.raises(ValueError, match="expect_head"):
            tc.replay(file, expect_head=wrong)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"threshold": 0}, "threshold"),
        ({"trusted_keys": [""]}, "trusted_keys"),
        ({"trusted_keys": [5]}, "trusted_keys"),
    ],
)
def test_options_that_cannot_be(options, words):
    with pytest.raises(ValueError, match=words):
        tc.Options(**options)


def test_one_key_may_stand_alone(keys):
    assert tc.Options(trusted_keys=keys.vkey("ci")).trusted_keys == (keys.vkey("ci"),)


def test_importing_and_unsigned_work_loads_no_cryptography(file):
    record(file)
    program = (
        "import sys, toolcassette as tc\n"
        f"assert tc.verify({str(file)!r}).ok\n"
        f"with tc.replay({str(file)!r}, allow_unconsumed=True): pass\n"
        "print('cryptography' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
