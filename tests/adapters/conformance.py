"""What every adapter must do, as classes of tests that an adapter's own tests inherit.

    from tests.adapters.conformance import Driver, Models, Nested, Parallel, Tools

    class PydanticAi(Driver):
        models = ("fake",)
        on_mismatch = "CassetteMismatch"

        async def run(self, world): ...

    class TestPydanticAi(Tools, Parallel, Models, Nested):
        driver = PydanticAi()

A class inherits what its framework can do, and nothing is skipped: ``Tools`` is for all; ``Parallel`` where calls of
one turn overlap; ``Cancelling`` where a run can be cancelled from outside; ``Models`` and ``Streams`` where the adapter
has a model seam; ``Nested`` where a tool can run another agent; ``Annotated`` where a recorded value is held against
the tool's annotation of today; ``Rejecting`` and ``Bypassing`` where the framework can refuse a call, or answer it
elsewhere. Tests run on the loop of the ``anyio_backend`` fixture, asyncio unless a class overrides it.

The protocol. A ``World`` says what there is: ``tools`` (plain async functions by name, to be given to the framework as
a user would), ``composites`` (names of those that run other agents), a script for the fake model, and which calls a
guard rejects or a middleware answers. It counts what was really done: ``ran`` (tool bodies), ``asked`` (model calls). A
``Driver`` makes an agent of a world with the real framework, a fake model and our adapter always in place, and runs it:

- ``run(world)``: a whole run; what the program sees of it, as values that can be compared: output and message history.
  The fake model takes ``world.answer()`` for each of its turns, ``world.new_id()`` for each id that a provider would
  make up. What a run raises, it raises.
- ``stream(world, reads=None)``: a run of a single turn of text that is streamed; each item that the program sees, as
  comparable values. With ``reads`` it stops after so many and closes the stream.
- ``schema(fn, cassette=...)``: what the framework tells a model of a tool, with the adapter in place and without.
- ``world.rejects`` and ``world.bypasses`` are cities: a call of ``weather`` for one of them is refused by the
  framework's own guard (approval, guardrail), or is answered by a middleware outside ours that calls no tool.

Rule: every replay runs 0 bodies and, with the model on the cassette, asks 0 models; and the session's end decides.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
from typing import Any, ClassVar, NamedTuple

import anyio
import pytest

import toolcassette as tc


@dataclasses.dataclass(frozen=True)
class Weather:
    city: str
    degrees: float


@dataclasses.dataclass(frozen=True)
class Sunshine:
    hours: int


class Turn(NamedTuple):
    """One answer of the model: calls of tools (name, arguments), or words that are streamed one by one."""

    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    words: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "".join(self.words)


def calls(*made: tuple[str, dict[str, Any]]) -> Turn:
    return Turn(calls=made)


def says(*words: str) -> Turn:
    return Turn(words=words)


TOOLS = ("weather", "roll", "flaky", "hang", "tag")
DONE = says("do", "ne", "!")


class World:
    """A script and tools, and a count of what was really done. One for each run."""

    def __init__(self, *turns: Turn, rejects=(), bypasses=(), drifted=False, inner=()):
        self.turns = turns
        self.rejects = frozenset(rejects)
        self.bypasses = frozenset(bypasses)
        self.ran: list[str] = []  # bodies, as they end
        self.asked = 0  # model calls
        self.run_id = secrets.token_hex(8)
        self.hanging = anyio.Event()  # a call of `hang` began
        self.tools = _tools(self, drifted=drifted)
        self.composites: tuple[str, ...] = ()
        self._inner = inner
        self._ids = 0
        self._fast = anyio.Event()
        self._at = 0
        self._outer = self

    def answer(self) -> Turn:
        """The next turn; called by the fake model, each time it is really asked."""
        self._outer.asked += 1
        self._at += 1
        return self.turns[self._at - 1]

    def new_id(self) -> str:
        """An id as providers make them up: another one in each run."""
        self._ids += 1
        return f"id-{self.run_id}-{self._ids}"

    def delegating(self, driver):
        """This world, with a tool ``delegate`` that runs another agent of the driver's."""

        async def delegate(topic: str) -> str:
            """Let another agent look."""
            inner = World(*self._inner)
            inner.ran, inner._outer = self.ran, self
            return str(await driver.run(inner))

        self.tools = {"delegate": delegate, **self.tools}
        self.composites = ("delegate",)
        return self


def _tools(world: World, *, drifted: bool) -> dict[str, Any]:
    async def weather(city: str, unit: str = "c") -> Weather:
        """The weather of a city.

        Args:
            city: Where.
            unit: In what.
        """
        if city == "slow":
            await world._fast.wait()
        world.ran.append(f"weather {city}")
        if city == "fast":
            world._fast.set()
        return Weather(city, 20.5)

    async def roll() -> int:
        """A number that is another one each time."""
        world.ran.append("roll")
        return len(world.ran)

    async def flaky(n: int) -> str:
        """Fails."""
        world.ran.append("flaky")
        raise ValueError(f"no row {n}")

    async def hang() -> str:
        """Never ends."""
        world.ran.append("hang")
        world.hanging.set()
        await anyio.sleep_forever()
        raise AssertionError

    async def tag(words: list[str]) -> dict[str, Any]:
        """Plain JSON, nested."""
        world.ran.append("tag")
        return {"words": words, "ratio": 0.5, "none": None}

    if drifted:

        async def weather(city: str, unit: str = "c") -> Sunshine:  # type: ignore[misc] # another one of that name
            """The weather of a city."""
            world.ran.append("weather")
            return Sunshine(3)

    return {"weather": weather, "roll": roll, "flaky": flaky, "hang": hang, "tag": tag}


class Driver:
    """What a suite asks of a framework; see the module. ``on_mismatch``: what leaves a run whose tool call does not
    match: the name of an exception class, or ``swallowed``.
    """

    models: ClassVar[tuple[str, ...]] = ()  # under which names the fake model's calls stand on a cassette
    also: ClassVar[tuple[str, ...]] = ()  # what else must be on it for a replay without a server
    on_mismatch: ClassVar[str]

    def tool_name(self, name: str) -> str:
        """What a tool is called on a cassette."""
        return name

    async def run(self, world: World) -> Any:
        raise NotImplementedError

    async def stream(self, world: World, reads: int | None = None) -> list[Any]:
        raise NotImplementedError

    def schema(self, fn: Any, *, cassette: bool) -> Any:
        raise NotImplementedError


@pytest.mark.anyio
class Suite:
    """What the tests share."""

    driver: ClassVar[Driver]

    @pytest.fixture
    def anyio_backend(self):
        return "asyncio"

    @property
    def tools(self):
        return [*map(self.driver.tool_name, TOOLS), *self.driver.also]

    @property
    def everything(self):
        return [*self.tools, *self.driver.models]

    async def told(self, world):
        """What a program sees of a run; of one that fails, its exception."""
        try:
            return await self.driver.run(world)
        except tc.CassetteError:
            raise
        except Exception as error:
            return "raised", type(error).__name__, str(error)

    async def both(self, file, *turns, make=World):
        """A run, and the same with nothing that is really done. Returns the live world and what was told."""
        live, again = make(*turns), make(*turns)
        async with tc.record(file, self.everything, order="causal"):
            told = await self.told(live)
        async with tc.replay(file):
            assert await self.told(again) == told
        assert (again.ran, again.asked) == ([], 0)
        return live, told

    def recorded(self, file, tool):
        """The calls of a tool on a cassette."""
        return [call for call in tc.read_cassette(file) if call.tool == self.driver.tool_name(tool)]

    async def fails(self, file, world, **options):
        """What a replay of another program ends with, however the framework takes it, and what left the run."""
        left = "swallowed"
        with pytest.raises(tc.CassetteError) as caught:
            async with tc.replay(file, self.tools, **options):
                try:
                    await self.driver.run(world)
                except BaseException as error:
                    left = type(error).__name__
        assert world.ran == []
        return caught.value, left


class Tools(Suite):
    async def test_a_run_with_every_kind_of_value(self, file):
        live, _ = await self.both(
            file, calls(("weather", {"city": "Wuhan"})), calls(("tag", {"words": ["a", "b"]})), DONE
        )
        assert live.ran == ["weather Wuhan", "tag"]
        (call,) = self.recorded(file, "weather")
        assert json.loads(call.args).items() >= {"city": "Wuhan"}.items()

    async def test_without_a_session_tools_simply_run(self):
        world = World(calls(("weather", {"city": "Wuhan"})), DONE)
        await self.driver.run(world)
        assert world.ran == ["weather Wuhan"]

    async def test_the_same_arguments_twice_are_two_calls(self, file):
        turn = calls(("roll", {}))
        live, _ = await self.both(file, turn, turn, DONE)
        assert live.ran == ["roll", "roll"]
        first, second = self.recorded(file, "roll")
        assert first.args == second.args
        assert first.value != second.value

    async def test_an_error_is_raised_again(self, file):
        live, _ = await self.both(file, calls(("flaky", {"n": 7})), DONE)
        assert set(live.ran) == {"flaky"}

    async def test_ids_of_a_run_are_in_no_key(self, file):
        live, _ = await self.both(file, calls(("weather", {"city": "Wuhan"})), DONE)
        assert all(live.run_id.encode() not in call.args for call in tc.read_cassette(file))

    async def test_a_mismatch_is_seen_at_the_end(self, file):
        async with tc.record(file, self.tools, order="causal"):
            await self.driver.run(World(calls(("weather", {"city": "Wuhan"})), DONE))
        error, left = await self.fails(file, World(calls(("weather", {"city": "Oslo"})), DONE, DONE))
        assert isinstance(error, tc.CassetteMismatch)
        assert error.reason == "arguments_differ"
        assert left == self.driver.on_mismatch

    async def test_what_was_not_called_is_seen_at_the_end(self, file):
        async with tc.record(file, self.tools, order="causal"):
            await self.driver.run(World(calls(("weather", {"city": "Wuhan"})), DONE))
        error, left = await self.fails(file, World(DONE))
        assert isinstance(error, tc.UnconsumedCalls)
        assert left == "swallowed", "the run itself is fine"

    def test_a_model_is_told_the_same_of_a_tool(self):
        for fn in World().tools.values():
            shown = [json.dumps(self.driver.schema(fn, cassette=cassette)) for cassette in (True, False)]
            assert shown[0] == shown[1]


class Parallel(Suite):
    async def test_two_calls_at_once_that_end_in_the_other_order(self, file):
        turn = calls(("weather", {"city": "slow"}), ("weather", {"city": "fast"}))
        live, _ = await self.both(file, turn, DONE)
        assert live.ran == ["weather fast", "weather slow"]
        assert [json.loads(call.args)["city"] for call in self.recorded(file, "weather")] == ["slow", "fast"]


class Cancelling(Suite):
    async def test_a_call_that_is_cancelled_is_cancelled_again(self, file):
        world = World(calls(("hang", {})), DONE)
        async with tc.record(file, self.everything, order="causal"), anyio.create_task_group() as tasks:
            tasks.start_soon(self.driver.run, world)
            await world.hanging.wait()
            tasks.cancel_scope.cancel()
        assert [call.outcome for call in self.recorded(file, "hang")] == ["cancelled"]
        number = len(list(tc.read_cassette(file)))
        again = World(calls(("hang", {})), DONE)
        async with tc.replay(file) as session, anyio.create_task_group() as tasks:
            tasks.start_soon(self.driver.run, again)
            with anyio.fail_after(30):
                while len(list(session.calls())) < number:  # noqa: ASYNC110 - a session sends no word
                    await anyio.sleep(0.005)
            tasks.cancel_scope.cancel()
        assert (again.ran, again.asked) == ([], 0)


class Models(Suite):
    async def test_a_model_is_asked_once_and_never_again(self, file):
        live, _ = await self.both(file, calls(("weather", {"city": "Wuhan"})), DONE)
        assert live.asked == 2
        boundaries = [call.boundary for call in tc.read_cassette(file)]
        assert boundaries == ["model", "tool", "model"]

    async def test_no_model_is_asked_after_a_mismatch(self, file):
        async with tc.record(file, self.everything, order="causal"):
            await self.driver.run(World(calls(("weather", {"city": "Wuhan"})), DONE))
        world = World(DONE)
        with pytest.raises(tc.CassetteMismatch):
            async with tc.replay(file, [*self.everything, "other"]):
                with pytest.raises(tc.CassetteMismatch):
                    await tc.Registry().wrap(_other, name="other")()
                with pytest.raises(BaseException):  # noqa: B017 - which one is the framework's affair
                    await self.driver.run(world)
        assert (world.ran, world.asked) == ([], 0)


async def _other() -> None:
    raise AssertionError


class Streams(Suite):
    async def test_a_stream_is_equal_item_by_item(self, file):
        live, again = World(DONE), World(DONE)
        async with tc.record(file, self.everything, order="causal"):
            seen = await self.driver.stream(live)
        async with tc.replay(file):
            assert await self.driver.stream(again) == seen
        assert len(seen) >= len(DONE.words)
        assert (live.asked, again.asked) == (1, 0)

    async def test_a_stream_that_is_closed_early(self, file):
        async with tc.record(file, self.everything, order="causal"):
            seen = await self.driver.stream(World(DONE), reads=2)
        assert [call.outcome for call in tc.read_cassette(file)] == ["left_early"]
        again = World(DONE)
        async with tc.replay(file):
            assert await self.driver.stream(again, reads=2) == seen
        with pytest.raises(tc.CassetteMismatch):
            async with tc.replay(file):
                try:
                    await self.driver.stream(again)
                except Exception:
                    """The end decides."""
        assert again.asked == 0


class Nested(Suite):
    async def test_agents_within_tools_have_paths_of_their_own(self, file):
        inner = (calls(("roll", {})), says("looked"))

        def make(*turns):
            return World(*turns, inner=inner).delegating(self.driver)

        turn = calls(("delegate", {"topic": "a"}), ("delegate", {"topic": "b"}), ("roll", {}))
        live, _ = await self.both(file, turn, DONE, make=make)
        assert live.ran == ["roll"] * 3
        paths = [call.path for call in self.recorded(file, "roll")]
        assert len(set(paths)) == 3
        assert sorted(map(len, paths)) == [0, 1, 1]
        assert all(path[0].startswith("delegate:") for path in paths if path)


class Annotated(Suite):
    async def test_a_value_that_does_not_fit_any_more_is_refused(self, file):
        async with tc.record(file, self.tools, order="causal"):
            await self.driver.run(World(calls(("weather", {"city": "Wuhan"})), DONE))
        error, _ = await self.fails(file, World(calls(("weather", {"city": "Wuhan"})), DONE, drifted=True))
        assert isinstance(error, tc.ContractMismatch)


class Rejecting(Suite):
    REFUSED = calls(("weather", {"city": "Wuhan"}), ("weather", {"city": "secret"}))

    async def test_a_rejected_call_is_counted_and_rejected_again(self, file):
        def make(*turns):
            return World(*turns, rejects={"secret"})

        live, _ = await self.both(file, self.REFUSED, DONE, make=make)
        assert live.ran == ["weather Wuhan"]
        assert tc.inspect(file).rejected == 1

    async def test_another_number_of_rejections_fails(self, file):
        async with tc.record(file, self.tools, order="causal"):
            await self.driver.run(World(calls(("weather", {"city": "Wuhan"})), DONE))
        error, _ = await self.fails(file, World(self.REFUSED, DONE, rejects={"secret"}))
        assert isinstance(error, tc.CassetteMismatch)
        assert error.reason == "rejected_differs"


class Bypassing(Suite):
    ANSWERED = calls(("weather", {"city": "Wuhan"}), ("weather", {"city": "cached"}))

    async def test_a_call_that_is_answered_elsewhere_is_not_published(self, file):
        with pytest.raises(tc.NotPublished) as caught:
            async with tc.record(file, self.tools, order="causal"):
                await self.driver.run(World(self.ANSWERED, DONE, bypasses={"cached"}))
        assert caught.value.reason == "bypassed"

    async def test_one_that_is_answered_elsewhere_in_a_replay_poisons(self, file):
        async with tc.record(file, self.tools, order="causal"):
            await self.driver.run(World(self.ANSWERED, DONE))
        error, _ = await self.fails(file, World(self.ANSWERED, DONE, bypasses={"cached"}))
        assert isinstance(error, tc.CassetteMismatch)
        assert error.reason == "bypassed"
