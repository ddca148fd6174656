"""Record a generated program once, replay it under shuffled schedules: each call gets its own outcome or a mismatch."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import anyio
import pytest

import toolcassette as tc
from tests.concurrency.helpers import hurried, seeded, times
from tests.concurrency.programs import Node, Run, World, differences, generated, has_alike, sites_of

if TYPE_CHECKING:
    from pathlib import Path

REPLAYS = 2  # of each recording
SCHEDULES = times(25, 200)


def replay_options(program: Node, order: str) -> dict[str, Any]:
    """Alike calls may trade records, and then wait for what only the other one's caller would bring."""
    alike = has_alike(program)
    return {"order": order, "completion": "immediate" if alike else "required", "stall_after": 10}


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("seed", SCHEDULES)
def test_tasks(file: Path, seed: int, backend: str) -> None:
    chance = random.Random(seed)
    program, world = generated(chance, hangs=seed % 5 == 0), World()
    order = chance.choice(["any", "causal"])

    async def record() -> Run:
        run = Run(world, None)
        async with tc.record(file, ["work*", "hang*"], order=order, sync="none"):
            await run.tasks(program)
        return run

    async def replay(schedule: random.Random) -> Run:
        run = Run(world, schedule)
        async with tc.replay(file, **replay_options(program, order)):
            await run.tasks(program)
        return run

    with seeded(seed):
        recorded = anyio.run(record, backend=backend)
        bodies = world.bodies
        assert recorded.got.keys() == sites_of(program).keys()
        for again in range(REPLAYS):
            got = anyio.run(replay, random.Random(f"{seed} {again}"), backend=backend).got
            assert differences(program, recorded.got, got) == []
        assert world.bodies == bodies


@pytest.mark.parametrize("seed", SCHEDULES)
def test_threads(file: Path, seed: int) -> None:
    chance = random.Random(seed)
    program, world = generated(chance, hangs=False), World()
    order = chance.choice(["any", "causal"])
    with seeded(seed), hurried():
        recorded = Run(world, None)
        with tc.record(file, ["work*", "hang*"], order=order, sync="none"):
            recorded.threads(program)
        bodies = world.bodies
        for again in range(REPLAYS):
            run = Run(world, random.Random(f"{seed} {again}"))
            with tc.replay(file, **replay_options(program, order)):
                run.threads(program)
            assert differences(program, recorded.got, run.got) == []
        assert world.bodies == bodies


def changed(chance: random.Random, program: Node) -> tuple[str, Node]:
    """A program that is not the recorded one: a call more, a call less, another argument, two steps swapped."""
    steps = list(program.children)
    kinds = ["more", "less", "other", "swap"]
    kind = chance.choice(kinds if steps[0].argument != steps[-1].argument else kinds[:3])
    if kind == "more":
        steps.append(Node("call", 997, 997))
    elif kind == "less":
        del steps[-1]
    elif kind == "other":
        steps[0] = steps[0]._replace(argument=998)
    else:
        steps[0], steps[-1] = steps[-1], steps[0]
    return kind, program._replace(children=tuple(steps))


@pytest.mark.parametrize("seed", SCHEDULES)
def test_a_program_that_changed_never_gets_another_calls_outcome(file: Path, seed: int) -> None:
    chance = random.Random(seed)
    program, world = generated(chance, hangs=False), World()
    order = chance.choice(["any", "causal", "strict"])
    kind, other = changed(chance, program)

    async def run(mine: Run, node: Node, session: tc.Session) -> None:
        async with session:
            await mine.tasks(node)

    with seeded(seed):
        recorded, again = Run(world, None), Run(world, random.Random(seed) if order != "strict" else None)
        anyio.run(run, recorded, program, tc.record(file, ["work*", "hang*"], order=order, sync="none"))
        bodies = world.bodies
        session = tc.replay(file, stall_after=0.05)
        if kind == "swap" and order == "any":
            anyio.run(run, again, other, session)
        else:
            with pytest.raises((tc.CassetteError, ExceptionGroup)):
                anyio.run(run, again, other, session)
            assert session.verdict is not None
            assert isinstance(session.verdict.error, (tc.CassetteMismatch, tc.UnconsumedCalls))
        assert world.bodies == bodies
        identities = sites_of(other)
        for site, value in again.got.items():
            mates = [s for s, identity in sites_of(program).items() if identity == identities[site]]
            assert value in [recorded.got[s] for s in mates]
