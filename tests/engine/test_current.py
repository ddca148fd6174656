"""Which session a call belongs to: by context, by thread, or refused; never by a guess, never live by accident."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import toolcassette as tc
from tests.concurrency.helpers import outcome
from toolcassette.engine import current

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

bodies: list[str] = []


@pytest.fixture(autouse=True)
def _no_bodies_yet() -> Iterator[None]:
    bodies.clear()
    yield
    bodies.clear()


@tc.cassette_tool(name="alpha")
def alpha(x: int = 0) -> int:
    bodies.append("alpha")
    return x + 1


@tc.cassette_tool(name="beta")
def beta(x: int = 0) -> int:
    bodies.append("beta")
    return x + 2


def in_thread(call: Callable[[], object]) -> object:
    """What a call gives on a bare thread, which starts without the caller's context."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(outcome(call)))
    thread.start()
    thread.join()
    return found[0]


class Elder:
    """A thread that is older than the sessions of a test; it does what it is told."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._pool.submit(int).result()

    def does(self, call: Callable[[], object]) -> object:
        return self._pool.submit(outcome, call).result()

    def stop(self) -> None:
        self._pool.shutdown()


@pytest.fixture
def elder() -> Iterator[Elder]:
    elder = Elder()
    yield elder
    elder.stop()


@pytest.fixture
def cassette(file: Path) -> Path:
    """Holds one call of alpha."""
    with tc.record(file, ["alpha"]):
        assert alpha(1) == 2
    bodies.clear()
    return file


def tools_in(file: Path) -> list[str]:
    return [call.tool for call in tc.read_cassette(file)]


# -- by context -------------------------------------------------------------------------------------------------------


def test_without_any_session_the_tool_runs():
    assert alpha(1) == 2
    assert bodies == ["alpha"]


def test_the_innermost_session_that_selects_the_tool_decides(tmp_path):
    outer, inner = tmp_path / "outer", tmp_path / "inner"
    with tc.record(outer, ["alpha", "beta"]):
        alpha()
        with tc.record(inner, ["alpha"]):
            alpha()
            beta()
        beta()
    assert tools_in(outer) == ["alpha", "beta", "beta"]
    assert tools_in(inner) == ["alpha"]


def test_sessions_may_end_in_another_order_than_they_began(tmp_path):
    first, second = tc.record(tmp_path / "1", ["alpha"]), tc.record(tmp_path / "2", ["alpha"])
    first.__enter__()
    second.__enter__()
    alpha(1)
    with pytest.raises(tc.NotPublished, match="no selected call"):
        first.__exit__(None, None, None)
    alpha(2)
    second.__exit__(None, None, None)
    assert tools_in(tmp_path / "2") == ["alpha", "alpha"]
    assert alpha(3) == 4  # no session is left in this context
    assert bodies == ["alpha"] * 3


def test_two_open_at_once_are_told_apart_by_context(tmp_path):
    async def one(file: Path, times: int) -> None:
        async with tc.record(file, ["alpha"]):
            for _ in range(times):
                alpha()
                await asyncio.sleep(0.001)

    async def both() -> None:
        await asyncio.gather(one(tmp_path / "2", 2), one(tmp_path / "5", 5))

    asyncio.run(both())
    assert tools_in(tmp_path / "2") == ["alpha"] * 2
    assert tools_in(tmp_path / "5") == ["alpha"] * 5


def test_a_task_that_outlives_the_session_is_refused(file):
    async def program() -> tuple[object, list[str]]:
        go = asyncio.Event()

        async def leaked() -> object:
            await go.wait()
            return outcome(lambda: alpha(9))

        async with tc.record(file, ["alpha"]):
            alpha()
            task = asyncio.ensure_future(leaked())
        go.set()
        return await task, list(bodies)

    error, ran = asyncio.run(program())
    assert isinstance(error, tc.SessionClosed)
    assert ran == ["alpha"]


def test_a_closed_session_decides_also_where_an_outer_one_is_open(tmp_path):
    with tc.record(tmp_path / "outer", ["alpha"]):
        alpha()
        with tc.record(tmp_path / "inner", ["alpha"]):
            alpha()
            context = contextvars.copy_context()
        assert isinstance(context.run(outcome, alpha), tc.SessionClosed)
    assert tools_in(tmp_path / "outer") == ["alpha"]


def test_asyncio_to_thread_carries_the_session(file):
    async def program() -> None:
        async with tc.record(file, ["alpha"]):
            assert await asyncio.to_thread(alpha, 5) == 6

    asyncio.run(program())
    assert tools_in(file) == ["alpha"]


# -- without a context ------------------------------------------------------------------------------------------------


def test_a_bare_thread_born_inside_belongs_to_the_session(cassette):
    with tc.replay(cassette):
        assert in_thread(lambda: alpha(1)) == 2
    assert bodies == []


def test_run_in_executor_born_inside_belongs_to_the_session(cassette):
    async def program() -> object:
        async with tc.replay(cassette):
            return await asyncio.get_running_loop().run_in_executor(None, alpha, 1)

    assert asyncio.run(program()) == 2
    assert bodies == []


def test_an_executor_made_before_the_session_but_started_inside_belongs_to_it(cassette):
    with ThreadPoolExecutor(1) as pool:
        with tc.replay(cassette):
            assert pool.submit(alpha, 1).result() == 2
        assert isinstance(pool.submit(outcome, lambda: alpha(1)).result(), tc.SessionClosed)
    assert bodies == []


def test_a_thread_older_than_the_session_is_refused_and_told_what_to_do(cassette, elder):
    with tc.replay(cassette, allow_unconsumed=True):
        error = elder.does(lambda: alpha(1))
    assert isinstance(error, tc.NoSession)
    assert (error.reason, error.tool) == ("older_thread", "alpha")
    assert "tc.bind" in str(error)
    assert bodies == []


def test_bind_hands_the_session_to_an_older_thread(cassette, elder):
    with tc.replay(cassette):
        assert elder.does(tc.bind(lambda: alpha(1))) == 2
    assert bodies == []


def test_a_bound_function_keeps_its_session_when_that_is_closed(cassette, elder):
    with tc.replay(cassette):
        bound = tc.bind(lambda: alpha(1))
        assert bound() == 2
    assert isinstance(elder.does(bound), tc.SessionClosed)


def test_a_bound_function_runs_in_many_threads_at_once(file):
    together = threading.Barrier(4)

    def work(n: int) -> int:
        together.wait()
        return alpha(n)

    with ThreadPoolExecutor(4) as pool, tc.record(file, ["alpha"]):
        assert sorted(pool.map(tc.bind(work), range(4))) == [1, 2, 3, 4]
    assert tools_in(file) == ["alpha"] * 4


def test_bind_refuses_a_coroutine_function():
    async def fn() -> None: ...

    with pytest.raises(TypeError, match="plain function"):
        tc.bind(fn)


def test_two_open_sessions_that_select_a_tool_are_ambiguous_without_a_context(tmp_path):
    with tc.record(tmp_path / "1", ["alpha"], allow_empty=True), tc.record(tmp_path / "2", ["alpha"], allow_empty=True):
        error = in_thread(alpha)
    assert isinstance(error, tc.NoSession)
    assert error.reason == "ambiguous"
    assert bodies == []


def test_two_open_sessions_of_which_one_selects_the_tool_are_not(tmp_path):
    with tc.record(tmp_path / "1", ["alpha"], allow_empty=True), tc.record(tmp_path / "2", ["beta"]):
        assert in_thread(beta) == 2
    assert tools_in(tmp_path / "2") == ["beta"]


class Late:
    """A thread that was born now, and calls later."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._go = threading.Event()
        self._found: list[object] = []
        self._thread = threading.Thread(target=self._run, args=(call,))
        self._thread.start()

    def _run(self, call: Callable[[], object]) -> None:
        self._go.wait()
        self._found.append(outcome(call))

    def now(self) -> object:
        self._go.set()
        self._thread.join()
        return self._found[0]


def test_a_late_thread_is_refused_after_the_close(file):
    with tc.record(file, ["alpha"]):
        alpha()
        late = Late(alpha)
    assert isinstance(late.now(), tc.SessionClosed)
    assert bodies == ["alpha"]


def test_a_late_thread_never_lands_in_the_session_that_comes_next(file, cassette):
    with tc.replay(cassette):
        alpha(1)
        late = Late(lambda: alpha(1))
    with tc.replay(cassette, allow_unconsumed=True) as after:
        assert isinstance(late.now(), tc.SessionClosed)
    assert after.verdict is not None
    assert after.verdict.calls == 0
    assert bodies == []


def test_a_late_thread_of_two_sessions_is_refused_by_both(tmp_path):
    with tc.record(tmp_path / "outer", ["beta"]):
        beta()
        with tc.record(tmp_path / "inner", ["alpha"]):
            alpha()
            of_inner, of_outer = Late(alpha), Late(beta)
    bodies.clear()
    assert isinstance(of_inner.now(), tc.SessionClosed)
    assert isinstance(of_outer.now(), tc.SessionClosed)
    assert bodies == []


def test_a_late_thread_may_still_call_what_no_session_selected(file):
    with tc.record(file, ["alpha"]):
        alpha()
        late = Late(beta)
    assert late.now() == 2


def test_a_finaliser_that_calls_a_tool_while_sessions_are_counted_does_not_deadlock(file):
    class Odd(tc.Replayer):
        """Its hash is asked for under the lock, where a finaliser may run too."""

        def __init__(self) -> None:
            self.found: list[object] = []

        def __hash__(self) -> int:
            if not self.found:
                self.found.append("asked")
                self.found.append(outcome(alpha))
            return 1

        def selects(self, tool: str) -> bool:
            return False

    odd = Odd()

    def work() -> None:
        current.join(odd)
        current.part(odd)

    with tc.record(file, ["alpha"]):
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(5)
        assert not thread.is_alive()
    assert odd.found == ["asked", 1]


# -- what may run for real --------------------------------------------------------------------------------------------


def test_forbid_live(cassette):
    with tc.forbid_live():
        for error in (outcome(alpha), in_thread(alpha)):
            assert isinstance(error, tc.NoSession)
            assert error.reason == "forbidden"
        with tc.replay(cassette):
            assert alpha(1) == 2
        with tc.forbid_live():
            pass
        assert isinstance(outcome(alpha), tc.NoSession)
    assert bodies == []
    assert alpha() == 1


def test_the_variable_for_replay_forbids_live_calls(monkeypatch):
    monkeypatch.setenv("TOOLCASSETTE_MODE", "replay")
    error = outcome(alpha)
    assert isinstance(error, tc.NoSession)
    assert error.reason == "forbidden"
    monkeypatch.setenv("TOOLCASSETTE_MODE", "live")
    assert alpha() == 1


def test_a_replay_runs_no_tool_outside_the_cassettes_include(cassette):
    session = tc.replay(cassette)
    with pytest.raises(tc.NotSelected) as caught, session:  # also where the program swallows it
        assert alpha(1) == 2
        for error in (outcome(beta), in_thread(beta)):
            assert isinstance(error, tc.NotSelected)
            assert error.tool == "beta"
    assert caught.value.tool == "beta"
    assert bodies == []
    assert session.verdict is not None
    assert not session.verdict.ok


def test_a_replay_with_include_lets_others_run_for_real(cassette):
    with tc.replay(cassette, ["alpha"]):
        assert alpha(1) == 2
        assert beta() == 2
        assert in_thread(beta) == 2
    assert bodies == ["beta", "beta"]


def test_a_live_tool_beside_a_replay_is_recorded_by_the_session_that_selects_it(cassette, tmp_path):
    with tc.record(tmp_path / "beta", ["beta"]), tc.replay(cassette, ["alpha"]):
        alpha(1)
        beta()
    assert tools_in(tmp_path / "beta") == ["beta"]
    assert bodies == ["beta"]


def test_a_live_session_selects_nothing():
    with tc.session("live") as session:
        assert alpha() == 1
        assert in_thread(alpha) == 1
    assert session.verdict is not None
    assert (session.verdict.mode, session.verdict.outcome, session.verdict.ok) == ("live", "live", True)
