"""C-10: a recording is cut at every byte of a frame. What was whole before it comes back, and nothing else."""

from __future__ import annotations

import pytest

import toolcassette as tc

FRAMES = 4  # intact before the frame that is cut


def five_calls(folder):
    """The partial of a recording of five calls that was not ended."""
    tool = tc.Registry().wrap(lambda n: f"result {n}", name="fetch")
    file = folder / "x.cassette.jsonl"
    with pytest.raises(KeyError), tc.record(file, ["fetch"]):
        for n in range(5):
            tool(n)
        raise KeyError("the agent stopped")
    return folder / "x.cassette.jsonl.partial"


def test_c10_every_cut_gives_back_the_frames_before_it(place):
    partial = five_calls(place)
    lines = partial.read_bytes().splitlines(keepends=True)
    before, frame = b"".join(lines[:FRAMES]), lines[FRAMES]
    new = place / "new.cassette.jsonl"
    for cut in range(len(frame)):
        partial.write_bytes(before + frame[:cut])
        report = tc.verify(partial)
        assert (report.state, report.frames, report.exit_status) == ("open", FRAMES, 1)
        found = tc.recover(partial)
        assert (found.found, found.done, found.frames) == ("unfinished", "nothing", FRAMES)
        saved = tc.recover(partial, salvage=new)
        assert (saved.calls, saved.lost, saved.frames) == (1, 1, FRAMES)
        assert partial.read_bytes() == before + frame[:cut], "the fragment stays where it was"
        assert [call.args for call in tc.read_cassette(new)] == [b'{"n":0}']
        new.unlink()


def test_c10_a_recorder_never_writes_behind_a_fragment(place):
    partial = five_calls(place)
    torn = partial.read_bytes()[:-20]
    partial.write_bytes(torn)
    tool = tc.Registry().wrap(lambda n: n, name="fetch")
    with pytest.raises(tc.CassetteExists) as caught, tc.record(place / "x.cassette.jsonl", ["fetch"]):
        tool(1)
    assert caught.value.what == "stale_partial"
    assert partial.read_bytes() == torn
    with tc.record(place / "x.cassette.jsonl", ["fetch"], stale="set-aside"):
        tool(1)
    (aside,) = place.glob("*.partial.*")
    assert aside.read_bytes() == torn
    assert tc.recover(aside, salvage=place / "old.cassette.jsonl").calls == 4


def test_c10_a_salvaged_recording_replays_what_it_has(place):
    partial = five_calls(place)
    partial.write_bytes(partial.read_bytes()[:-20])
    tc.recover(partial, salvage=place / "new.cassette.jsonl")
    tool = tc.Registry().wrap(lambda n: pytest.fail("a body ran"), name="fetch")
    with tc.replay(place / "new.cassette.jsonl"):
        assert [tool(n) for n in range(4)] == [f"result {n}" for n in range(4)]
    with pytest.raises(tc.CassetteMismatch) as caught, tc.replay(place / "new.cassette.jsonl"):
        for n in range(5):
            tool(n)
    assert caught.value.ordinal == 4
