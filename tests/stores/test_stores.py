"""What every store promises, shown on each of them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from tests.stores.conftest import CASSETTE_ID, HEADER, Place
from toolcassette.errors import CassetteExists, FormatError, StoreError
from toolcassette.stores import PARTIAL_SUFFIX, BlobStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcassette.stores import Spool

PARTIAL = "x" + PARTIAL_SUFFIX
ASIDE = f"{PARTIAL}.{CASSETTE_ID[:8]}"


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(CassetteExists) as caught:
        act()
    return caught.value.what


def absent(act: Callable[[], object]) -> bool:
    with pytest.raises(FormatError) as caught:
        act()
    return caught.value.reason == "absent"


def test_a_recording_appears_whole_and_only_at_publish(place: Place):
    spool = place.create()
    spool.append(b"one\n")
    spool.append(b"")
    spool.append(b"two\n")
    assert place.read(PARTIAL) == b"one\ntwo\n"
    spool.sync()
    assert not place.has()
    spool.publish()
    assert place.read() == b"one\ntwo\n"
    assert not place.has(PARTIAL)
    assert spool.name == place.at("x")
    assert list(spool.notes) == []


def test_an_empty_recording_can_be_published(place: Place):
    place.recorded(b"")
    assert place.read() == b""


def test_the_partial_is_live_while_it_is_open_and_stale_after(place: Place):
    spool = place.create()
    assert place.store.has_partial(place.at("x"))
    with place.store.open(place.at(PARTIAL)) as source:
        assert (source.live, source.partial, source.size) == (True, True, 0)
    spool.keep()
    with place.store.open(place.at(PARTIAL)) as source:
        assert (source.live, source.partial) == (False, True)
    assert not place.store.has_partial(place.at("y"))


def test_a_published_cassette_is_neither_live_nor_partial(place: Place):
    place.recorded(b"a\n")
    with place.store.open(place.at("x")) as source:
        assert (source.live, source.partial, source.size) == (False, False, 2)
    assert not place.store.has_partial(place.at("x"))


def test_create_refuses_a_cassette(place: Place):
    place.recorded(b"a\n")
    assert refused(place.create) == "cassette"
    assert refused(lambda: place.create(set_aside=True)) == "cassette"
    assert place.read() == b"a\n"
    assert not place.store.has_partial(place.at("x"))


@pytest.mark.parametrize("set_aside", [False, True])
@pytest.mark.parametrize("replace", [False, True])
def test_create_refuses_a_live_partial(place: Place, set_aside: bool, replace: bool):
    spool = place.create()
    spool.append(b"a\n")
    assert refused(lambda: place.create(set_aside=set_aside, replace=replace)) == "live_partial"
    spool.append(b"b\n")
    spool.publish()
    assert place.read() == b"a\nb\n"


def test_create_refuses_a_stale_partial(place: Place):
    place.abandoned(b"a\n")
    assert refused(place.create) == "stale_partial"
    assert place.read(PARTIAL) == b"a\n"
    assert not place.live(PARTIAL)


def test_set_aside_uses_the_id_of_the_stale_partial_and_never_overwrites(place: Place):
    for n in (1, 2, 3):
        place.abandoned(HEADER + b"%d\n" % n, set_aside=True)
    place.recorded(b"new\n", set_aside=True)
    assert place.read() == b"new\n"
    assert [place.read(name) for name in (ASIDE, ASIDE + "-2", ASIDE + "-3")] == [
        HEADER + b"1\n",
        HEADER + b"2\n",
        HEADER + b"3\n",
    ]
    assert not place.has(PARTIAL)
    with place.store.open(place.at(ASIDE + "-2")) as source:
        assert source.partial
        assert not source.live


def test_set_aside_of_a_partial_without_a_stale_one_is_a_plain_create(place: Place):
    place.recorded(b"a\n", set_aside=True)
    assert place.read() == b"a\n"


@pytest.mark.parametrize("end", ["publish", "swap"])
def test_publish_never_overwrites_what_came_meanwhile(place: Place, end: str):
    spool = place.create(replace=end == "swap")
    spool.append(b"late\n")
    other = Place(place.store, place.folder)
    put(other, b"first\n")
    assert refused(getattr(spool, end)) == "cassette"
    assert refused(getattr(spool, end)) == "cassette"
    spool.keep()
    assert place.read() == b"first\n"
    assert place.read(PARTIAL) == b"late\n"


def put(place: Place, data: bytes, name: str = "x") -> None:
    """Make a cassette appear although a partial of its name is open: through the partial of another name."""
    place.recorded(data, "other")
    if place.folder:
        from pathlib import Path

        Path(place.at("other")).replace(place.at(name))
    elif isinstance(place.store, BlobStore):
        assert place.store.put(place.at(name), data, place.store.get(place.at(name)))
        assert place.store.delete("other", data)
    else:
        place.store._blobs[name] = place.store._blobs.pop("other")  # type: ignore[attr-defined] # the one look inside


def test_swap_replaces_only_when_it_is_called(place: Place):
    place.recorded(b"old\n")
    spool = place.create(replace=True)
    spool.append(b"new\n")
    spool.sync()
    assert place.read() == b"old\n"
    spool.swap()
    assert place.read() == b"new\n"
    assert not place.has(PARTIAL)


def test_swap_without_an_old_cassette_is_a_publish(place: Place):
    place.recorded(b"new\n", replace=True)
    assert place.read() == b"new\n"
    assert not place.has(PARTIAL)


def test_swap_refuses_another_old_cassette(place: Place):
    place.recorded(b"old\n")
    spool = place.create(replace=True)
    spool.append(b"new\n")
    put(place, b"foreign\n")
    assert refused(spool.swap) == "cassette"
    spool.keep()
    assert place.read() == b"foreign\n"
    assert place.read(PARTIAL) == b"new\n"


def test_swap_is_for_rerecording_only(place: Place):
    spool = place.create()
    with pytest.raises(RuntimeError, match="replace=True"):
        spool.swap()
    spool.append(b"a\n")  # misuse fails nothing
    spool.publish()
    assert place.read() == b"a\n"


def test_discard_drops_the_partial_and_leaves_the_cassette(place: Place):
    place.recorded(b"old\n")
    spool = place.create(replace=True)
    spool.append(b"old\n")
    spool.discard()
    assert place.read() == b"old\n"
    assert not place.has(PARTIAL)
    place.recorded(b"new\n", replace=True)
    assert place.read() == b"new\n"


@pytest.mark.parametrize("end", ["publish", "swap", "discard", "keep", "forget"])
def test_after_the_end_everything_is_misuse_but_keep_and_forget(place: Place, end: str):
    spool = place.create(replace=True)
    spool.append(b"a\n")
    getattr(spool, end)()
    before = {name: place.has(name) for name in ("x", PARTIAL)}
    for act in (lambda: spool.append(b"b\n"), spool.sync, spool.publish, spool.swap, spool.discard):
        with pytest.raises(RuntimeError, match="already"):
            act()
    spool.keep()
    spool.keep()
    spool.forget()
    assert {name: place.has(name) for name in ("x", PARTIAL)} == before


def test_keep_after_a_failure_leaves_the_failure(place: Place):
    spool = place.create()
    put(place, b"first\n")
    assert refused(spool.publish) == "cassette"
    spool.keep()
    with pytest.raises(StoreError):
        spool.append(b"a\n")
    with pytest.raises(StoreError):
        spool.discard()
    assert place.has(PARTIAL)


def test_adopt_publishes_what_another_recorder_left(place: Place):
    place.abandoned(b"a\nb\n")
    spool = place.store.adopt(place.at("x"))
    assert spool.name == place.at("x")
    assert place.live(PARTIAL)
    spool.publish()
    assert place.read() == b"a\nb\n"
    assert not place.has(PARTIAL)


def test_adopt_can_go_on_writing_and_can_be_kept(place: Place):
    place.abandoned(b"a\n")
    spool = place.store.adopt(place.at("x"))
    spool.append(b"b\n")
    spool.sync()
    spool.keep()
    place.store.adopt(place.at("x")).publish()
    assert place.read() == b"a\nb\n"


def test_an_adopted_partial_can_be_swapped_in(place: Place):
    place.recorded(b"old\n")
    place.abandoned(b"new\n", replace=True)
    place.store.adopt(place.at("x")).swap()
    assert place.read() == b"new\n"
    assert not place.has(PARTIAL)
    place.abandoned(b"newer\n", replace=True)
    spool = place.store.adopt(place.at("x"))
    put(place, b"foreign\n")
    assert refused(spool.swap) == "cassette"
    spool.keep()
    assert place.read() == b"foreign\n"
    place.store.adopt(place.at("x")).discard()
    assert not place.has(PARTIAL)


def test_adopt_refuses_a_live_partial_and_a_missing_one(place: Place):
    assert absent(lambda: place.store.adopt(place.at("x")))
    spool = place.create()
    assert refused(lambda: place.store.adopt(place.at("x"))) == "live_partial"
    spool.publish()
    assert absent(lambda: place.store.adopt(place.at("x")))


def test_adopt_never_overwrites(place: Place):
    place.abandoned(b"mine\n")
    put(place, b"theirs\n")
    spool = place.store.adopt(place.at("x"))
    assert refused(spool.publish) == "cassette"
    spool.keep()
    assert place.read() == b"theirs\n"
    assert place.read(PARTIAL) == b"mine\n"


def test_a_source_is_a_snapshot(place: Place):
    spool = place.create()
    spool.append(b"0123456789")
    with place.store.open(place.at(PARTIAL)) as source:
        spool.append(b"later")
        assert source.size == 10
        assert b"".join(source.blocks()) == b"0123456789"
        assert list(source.blocks(4)) == [b"0123", b"4567", b"89"]
        assert source.read_at(8, 100) == b"89"
        assert source.read_at(3, 2) == b"34"
        assert source.read_at(10, 1) == b""
        assert source.read_at(99, 1) == b""
        assert source.read_at(0, 0) == b""
        for wrong in ((-1, 1), (0, -1)):
            with pytest.raises(ValueError, match="offset and length"):
                source.read_at(*wrong)
    spool.keep()


def test_a_source_goes_on_reading_what_was_replaced(place: Place):
    place.recorded(b"old\n")
    with place.store.open(place.at("x")) as source:
        place.recorded(b"new and longer\n", replace=True)
        assert b"".join(source.blocks()) == b"old\n"
    assert place.read() == b"new and longer\n"


def test_a_closed_source_is_misuse(place: Place):
    place.recorded(b"a\n")
    source = place.store.open(place.at("x"))
    blocks = source.blocks(1)
    assert next(blocks) == b"a"
    source.close()
    source.close()
    with pytest.raises(RuntimeError, match="closed"):
        next(blocks)
    with pytest.raises(RuntimeError, match="closed"):
        source.read_at(0, 1)


def test_open_says_absent(place: Place):
    assert absent(lambda: place.store.open(place.at("x")))
    assert absent(lambda: place.store.open(place.at(PARTIAL)))


@pytest.mark.parametrize("name", ["", "a\0b", ".", "..", "a/", "a/.", "a/..", "a\ud800b"])
def test_unusable_names(place: Place, name: str):
    folder = place.folder if name else ""
    for act in (
        lambda: place.store.create(folder + name, cassette_id=CASSETTE_ID),
        lambda: place.store.open(folder + name),
        lambda: place.store.adopt(folder + name),
        lambda: place.store.has_partial(folder + name),
    ):
        with pytest.raises(ValueError, match="name of a cassette") as caught:
            act()
        assert caught.value.__cause__ is None
        assert "tmp" not in str(caught.value)


@pytest.mark.parametrize("name", [PARTIAL, ASIDE, ASIDE + "-2"])
def test_the_name_of_a_partial_is_not_one_to_record_under(place: Place, name: str):
    with pytest.raises(ValueError, match="cannot be recorded"):
        place.create(name)
    with pytest.raises(ValueError, match="cannot be recorded"):
        place.store.adopt(place.at(name))


@pytest.mark.parametrize("name", ["x.partially", "x.partial.jsonl", "partial", "天气 ☂.jsonl", "a b'$(c)"])
def test_names_that_only_look_odd(place: Place, name: str):
    place.recorded(b"a\n", name)
    with place.store.open(place.at(name)) as source:
        assert not source.partial
        assert source.read_at(0, 9) == b"a\n"


def test_threads_racing_for_one_name(place: Place):
    spools: list[Spool] = []
    refusals: list[str] = []
    start = threading.Barrier(8)

    def record(n: int) -> None:
        start.wait()
        try:
            spool = place.create()
        except CassetteExists as error:
            refusals.append(error.what)
        else:
            spool.append(b"%d\n" % n)
            spools.append(spool)

    threads = [threading.Thread(target=record, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(spools) == 1
    assert refusals == ["live_partial"] * 7
    spools[0].publish()
    assert len(place.read()) == 2


def test_rewrite_puts_other_lines_in_the_place_of_all(place: Place):
    spool = place.create()
    spool.append(b"one\n")
    spool.append(b"two\n")

    def lines():
        with place.store.open(place.at(PARTIAL)) as source:  # as a recorder does: from what is there
            yield from (line.upper() + b"\n" for line in b"".join(source.blocks()).splitlines())

    spool.rewrite(lines())
    assert place.read(PARTIAL) == b"ONE\nTWO\n"
    assert place.live(PARTIAL)
    assert refused(place.create) == "live_partial"
    spool.append(b"three\n")
    spool.sync()
    spool.publish()
    assert place.read() == b"ONE\nTWO\nthree\n"
    assert not place.has(PARTIAL)


def test_rewrite_of_a_re_recording_swaps_and_of_a_kept_one_stays(place: Place):
    place.recorded(b"old\n")
    spool = place.create(replace=True)
    spool.append(b"new\n")
    spool.rewrite([b"newer\n"])
    spool.keep()
    assert (place.read(), place.read(PARTIAL)) == (b"old\n", b"newer\n")
    assert not place.live(PARTIAL)
    place.store.adopt(place.at("x")).swap()
    assert place.read() == b"newer\n"


def test_rewrite_that_fails_leaves_what_was_there(place: Place):
    spool = place.create()
    spool.append(b"one\n")

    def lines():
        yield b"half\n"
        raise StoreError("read the partial", errno_name="EIO")

    with pytest.raises(StoreError):
        spool.rewrite(lines())
    spool.keep()
    assert place.read(PARTIAL) == b"one\n"
    with pytest.raises(StoreError):
        spool.append(b"two\n")
