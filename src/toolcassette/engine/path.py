"""The call path: the scopes and composite calls around a call, root first.

Theory. Each context carries a stack of frames. A scope pushes ``label`` or ``label:key``; scopes of one label that
follow each other under one parent are told apart by number (``label``, ``label#1``); two that are open at once are
ambiguous, since no number could tell them apart in another order. A composite pushes ``name:<digest>#i``: the digest is
over its name and arguments, and ``i`` counts equal ones under one parent. A session pushes a mark, so that its paths
begin at it and not at scopes that were opened around it. Ids that change from run to run are never part of a path.

Where the context was dropped (bare threads), a scope counts below the session that was opened last, as if it had kept
its context. A scope that no session could ever see is neither counted nor refused: a server that serves many requests
at once, in scopes of one label, must not fail or grow where nothing is recorded.

Rule: a path is a value. It is fixed when a call begins, and a call below a frame that has ended is a late child.
"""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import os
import re
import threading
import weakref
from typing import TYPE_CHECKING, Final

from toolcassette.engine import current
from toolcassette.engine.call import Place
from toolcassette.errors import AmbiguousScope, printable
from toolcassette.redaction import masked, masked_text

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["Frame", "composite_label", "enter_root", "leave_root", "place_in", "pushed", "scope", "scope_label"]

_DIGEST_HEX: Final = 16
_ESCAPED: Final = frozenset("/#:%")
_LIKE_A_DIGEST: Final = re.compile(f"[0-9a-f]{{{_DIGEST_HEX}}}")
# One lock for all frames, held for a few steps. Re-entrant: a finaliser that opens a scope may run while we hold it.
_lock = threading.RLock()


class Frame:
    """One scope, composite call, or session (``segment`` None) that is or was open around a call."""

    __slots__ = ("_open", "_seen", "is_open", "owner", "segment")

    def __init__(self, segment: str | None, owner: object = None) -> None:
        self.segment = segment
        self.owner = owner  # the session whose mark this is
        self.is_open = True
        self._seen: dict[str, int] = {}  # label -> how often it was opened below here
        self._open: set[str] = set()

    def child(self, label: str, *, numbered: bool) -> Frame:
        """A frame below this one. ``numbered``: equal ones may be open at once, and each has its number."""
        with _lock:
            if not numbered and label in self._open:
                raise AmbiguousScope(label)
            count = self._seen.get(label, 0)
            self._seen[label] = count + 1
            if not numbered:
                self._open.add(label)
        return Frame(f"{label}#{count}" if count or numbered else label)

    def ended(self, label: str) -> None:
        """A scope of this label below here ended."""
        with _lock:
            self._open.discard(label)


_stack: contextvars.ContextVar[tuple[Frame, ...]] = contextvars.ContextVar("toolcassette_path", default=())
_process_root: Final = Frame(None)  # the parent of scopes in a process whose session has no block
_roots: Final[weakref.WeakKeyDictionary[object, Frame]] = weakref.WeakKeyDictionary()  # by session


def _escape(name: str) -> str:
    """A name that cannot be taken for structure: ``/ # : %`` and controls as ``%XX`` of UTF-8."""
    if name.isprintable() and _ESCAPED.isdisjoint(name):
        return name
    return "".join(
        "".join(f"%{byte:02X}" for byte in c.encode("utf-8", "replace")) if c in _ESCAPED or not c.isprintable() else c
        for c in name
    )


@contextlib.contextmanager
def scope(label: str, *, key: object = None) -> Generator[None]:
    """Calls within the block lie below ``label`` (or ``label:key``) in the call path; one scope for each sub-agent.

    ``key`` tells scopes of one label apart that are open at once: what the agent works on, as text or number, the same
    in every run. Raises ``AmbiguousScope`` where an equal scope is open under the same parent, ``ValueError`` for an
    empty label.
    """
    if not label:
        raise ValueError("a scope needs a label")
    name = scope_label(label) if key is None else f"{scope_label(label)}:{_escape_key(masked_text(str(key)))}"
    with pushed(name, numbered=False):
        yield


def scope_label(name: str) -> str:
    """What a scope of this name is called in a path."""
    return _escape(name)


def _escape_key(key: str) -> str:
    """A key, so that no scope passes for a composite call."""
    return f"%{ord(key[0]):02X}{key[1:]}" if _LIKE_A_DIGEST.fullmatch(key) else _escape(key)


@contextlib.contextmanager
def pushed(label: str, *, numbered: bool) -> Generator[None]:
    """Within the block, calls lie below a frame of this label."""
    stack = _stack.get()
    parent = stack[-1] if stack else _parent_without_context()
    frame = parent.child(label, numbered=numbered)
    token = _stack.set((*stack, frame))
    try:
        yield
    finally:
        frame.is_open = False
        if not numbered:
            parent.ended(label)
        with contextlib.suppress(ValueError):  # left in another context (a generator): it dies with that
            _stack.reset(token)


def _parent_without_context() -> Frame:
    newest = current.newest()
    with _lock:
        root = _roots.get(newest) if newest is not None else None
    return root or (_process_root if current.may_be_asked() else Frame(None))


def composite_label(name: str, args: bytes) -> str:
    """What a composite call is called in a path: its name, and a digest of name and canonical arguments.

    Secrets in them are blotted out, so that another run with other secrets has the same path.
    """
    digest = hashlib.sha256(name.encode("utf-8") + b"\0" + masked(args)).hexdigest()[:_DIGEST_HEX]
    return f"{_escape(name)}:{digest}"


def enter_root(owner: object) -> None:
    """Mark where the paths of a session begin."""
    root = Frame(None, owner)
    with _lock:
        _roots[owner] = root
    _stack.set((*_stack.get(), root))


def leave_root(owner: object) -> None:
    """Undo ``enter_root``, also from another context."""
    _stack.set(tuple(frame for frame in _stack.get() if frame.owner is not owner))


_NOWHERE: Final = Place((), None)


def place_in(owner: object) -> Place:
    """The place of a call made here, as the session ``owner`` sees it: below its mark, or below nothing."""
    stack = _stack.get()
    if not stack or stack[-1].owner is owner:
        return _NOWHERE
    for index in range(len(stack) - 1, -1, -1):
        if stack[index].owner is owner:
            stack = stack[index + 1 :]
            break
    below = [frame for frame in stack if frame.segment is not None]
    if not below:
        return _NOWHERE
    late = next((printable(frame.segment or "") for frame in below if not frame.is_open), None)
    return Place(tuple(frame.segment or "" for frame in below), late)


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 - it may be held by a thread that does not exist here
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
