"""Blocking work on behalf of a task. Rule: the event loop never waits for a disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["off_loop"]

_T = TypeVar("_T")


async def off_loop(function: Callable[[], _T]) -> _T:
    """Run a blocking function in a worker thread to its end, shielded from cancellation."""
    from toolcassette.engine import aio

    return await aio.off_loop(function)
