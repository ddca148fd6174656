"""The signal that a recorded value does not fit a part of an annotation.

Rule: it is raised where the value is met and learns its path on the way out; it never leaves this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Unfit"]


class Unfit(Exception):
    """A recorded value does not fit a node; carries the path from the root, innermost segment first.

    ``spot``: the part of a tree at which an untyped reading failed; whoever knows the whole tree finds its path.
    """

    def __init__(self, wanted: str, segments: Iterable[str | int] = (), *, spot: object = None) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.segments = list(segments)
        self.spot = spot

    def under(self, segment: str | int) -> Unfit:
        """The same misfit, seen from one level further out."""
        self.segments.append(segment)
        return self
