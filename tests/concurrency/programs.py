"""Generated programs: tasks or threads, sleeps, nested scopes, composites, errors and cancellations.

Theory. A program is a tree. Each call in it has a *site*, a number of its own. What a body returns (or raises) holds a
serial number that no other body has, so an outcome tells which record it came from. Recording gives the outcome of each
site; a replay of the same program, however its branches interleave, must give the same. Only sites whose calls are
alike (path, tool, arguments) may trade outcomes.
"""

from __future__ import annotations

import collections
import itertools
import random
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio

import toolcassette as tc

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ALIKE = 3  # arguments below this number are shared by several sites
CANCELLED_AFTER = 0.2  # seconds; long enough for any call to have begun


class Node(NamedTuple):
    """``kind``: call, hang (which is cancelled), sleep, seq, par, scope or composite. ``number``: of a site, a key."""

    kind: str
    number: int = 0
    argument: int = 0
    children: tuple[Node, ...] = ()


def generated(chance: random.Random, *, hangs: bool) -> Node:
    """A program of some twenty calls."""
    numbers = itertools.count(ALIKE)

    def call() -> Node:
        site = next(numbers)
        if hangs and chance.random() < 0.06:
            return Node("hang", site, site)
        return Node("call", site, chance.randrange(ALIKE) if chance.random() < 0.3 else site)

    def node(depth: int) -> Node:
        kind = chance.choice(["call", "call", "sleep", "seq", "par", "par", "scope", "composite"])
        if depth == 0 or kind == "call":
            return call()
        if kind == "sleep":
            return Node("sleep")
        below = tuple(node(depth - 1) for _ in range(chance.randint(1, 3)))
        return Node(kind, next(numbers), 0, below)

    return Node("seq", 0, 0, (call(), *(node(3) for _ in range(3)), call()))


class World:
    """The tools of a program, and what its sites got. ``bodies`` counts the real ones."""

    def __init__(self) -> None:
        self.bodies = 0
        self._serials = itertools.count()
        self._lock = threading.Lock()
        self._chance = random.Random(1)
        registry = tc.Registry()
        self.work: Callable[[int], Any] = registry.wrap(self._work, name="work")
        self.awork: Callable[[int], Any] = registry.wrap(self._awork, name="work_async")
        self.hang: Callable[[int], Any] = registry.wrap(self._hang, name="hang")

    def _answer(self, argument: int) -> dict[str, int]:
        with self._lock:
            self.bodies += 1
            serial = next(self._serials)
        if serial % 5 == 3:
            raise ValueError(argument, serial)
        return {"argument": argument, "serial": serial}

    def _work(self, argument: int) -> dict[str, int]:
        time.sleep(self._chance.choice([0, 0, 0.0005, 0.002]))
        return self._answer(argument)

    async def _awork(self, argument: int) -> dict[str, int]:
        await anyio.sleep(self._chance.choice([0, 0, 0.0005, 0.002]))
        return self._answer(argument)

    async def _hang(self, argument: int) -> dict[str, int]:
        with self._lock:
            self.bodies += 1
        await anyio.sleep(60)
        raise AssertionError("nobody cancelled")


class Run:
    """One run of a program; ``got`` tells the outcome of each site. ``chance`` None: as it comes, else shuffled."""

    def __init__(self, world: World, chance: random.Random | None) -> None:
        self.world = world
        self.got: dict[int, object] = {}
        self._chance = chance

        @tc.composite
        async def several(key: int, children: tuple[Node, ...]) -> None:
            await self._inside(children)

        @tc.composite
        def several_sync(key: int, children: tuple[Node, ...]) -> None:
            self._inside_sync(children)

        self._several = several
        self._several_sync = several_sync

    def _pause(self) -> float:
        return 0 if self._chance is None else self._chance.choice([0, 0, 0.0003, 0.001])

    def _shuffled(self, children: tuple[Node, ...]) -> list[Node]:
        return list(children) if self._chance is None else self._chance.sample(children, len(children))

    def _keep(self, site: int, call: Callable[[], object]) -> None:
        try:
            self.got[site] = call()
        except ValueError as error:
            self.got[site] = error.args

    # -- tasks ----------------------------------------------------------------------------------------------------

    async def tasks(self, node: Node) -> None:
        """Run a node as a task; its parallel branches are tasks."""
        await anyio.sleep(self._pause())
        if node.kind == "call":
            try:
                self.got[node.number] = await self.world.awork(node.argument)
            except ValueError as error:
                self.got[node.number] = error.args
        elif node.kind == "hang":
            with anyio.move_on_after(CANCELLED_AFTER):
                await self.world.hang(node.argument)
                raise AssertionError("it came back")
            self.got[node.number] = "cancelled"
        elif node.kind == "sleep":
            await anyio.sleep(0.001)
        elif node.kind == "par":
            async with anyio.create_task_group() as group:
                for child in self._shuffled(node.children):
                    group.start_soon(self.tasks, child)
        elif node.kind == "scope":
            with tc.scope("scope", key=node.number):
                await self._inside(node.children)
        elif node.kind == "composite":
            await self._several(node.number, node.children)
        else:
            await self._inside(node.children)

    async def _inside(self, children: tuple[Node, ...]) -> None:
        for child in children:
            await self.tasks(child)

    # -- threads --------------------------------------------------------------------------------------------------

    def threads(self, node: Node) -> None:
        """Run a node; its parallel branches are threads."""
        time.sleep(self._pause())
        if node.kind == "call":
            self._keep(node.number, lambda: self.world.work(node.argument))
        elif node.kind == "sleep":
            time.sleep(0.001)
        elif node.kind == "par":
            failures: list[BaseException] = []

            def branch(child: Node) -> None:
                try:
                    self.threads(child)
                except BaseException as error:
                    failures.append(error)

            branches = [threading.Thread(target=tc.bind(branch), args=(c,)) for c in self._shuffled(node.children)]
            for thread in branches:
                thread.start()
            for thread in branches:
                thread.join()
            if failures:
                raise failures[0]
        elif node.kind == "scope":
            with tc.scope("scope", key=node.number):
                self._inside_sync(node.children)
        elif node.kind == "composite":
            self._several_sync(node.number, node.children)
        else:
            self._inside_sync(node.children)

    def _inside_sync(self, children: tuple[Node, ...]) -> None:
        for child in children:
            self.threads(child)


def sites_of(node: Node, path: tuple[int, ...] = ()) -> dict[int, tuple[object, ...]]:
    """What identifies the call of each site: path, kind and argument."""
    if node.kind in ("call", "hang"):
        return {node.number: (path, node.kind, node.argument)}
    below = (*path, node.number) if node.kind in ("scope", "composite") else path
    found: dict[int, tuple[object, ...]] = {}
    for child in node.children:
        found |= sites_of(child, below)
    return found


def differences(program: Node, recorded: Mapping[int, object], again: Mapping[int, object]) -> list[int]:
    """The sites that did not get their own outcome, but for those that may trade theirs."""
    alike: dict[tuple[object, ...], list[int]] = collections.defaultdict(list)
    for site, identity in sites_of(program).items():
        alike[identity].append(site)
    wrong = []
    for sites in alike.values():
        if sorted(str(recorded[s]) for s in sites) != sorted(str(again[s]) for s in sites):
            wrong += sites
    return wrong


def has_alike(program: Node) -> bool:
    """True if some sites may trade outcomes."""
    identities = list(sites_of(program).values())
    return len(set(identities)) < len(identities)
