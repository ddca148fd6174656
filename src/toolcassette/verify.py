"""A cassette's state as data: ``verify``, ``inspect`` and ``read_cassette``.

Rule: one reader serves them all, and replay too. ``verify`` never raises on a bad file; ``read_cassette`` and
``inspect`` raise on any defect, so half a cassette is never shown as a whole one. None of them imports, calls or runs
anything that a file names.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from toolcassette.crypto import Checkpoint, FrameTree, Trust, read_signature, trust_of
from toolcassette.engine import read
from toolcassette.errors import SIGNATURE_REASONS, EncryptionError, FormatError, SignatureError, printable
from toolcassette.format import LINE_BYTES_CEILING, Cassette, Origin, Reader, state_of
from toolcassette.stores import FileStore
from toolcassette.surveying import SIDE_BY_SIDE_BYTES, Surveyors, cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from toolcassette.errors import CassetteError
    from toolcassette.format import Complete, Header
    from toolcassette.stores import Store

__all__ = ["Inspection", "Report", "ToolSummary", "inspect", "read_cassette", "verify", "verify_all"]

NO_KEY: Final = frozenset({"identity_missing", "identity_wrong"})  # an encrypted cassette is fine, and closed to us
_BLOCK_BYTES: Final = 256 * 1024  # one read: it stays in a core's own cache until it is hashed
_PROGRESS_SECONDS: Final = 0.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """What ``verify`` found.

    ``state``: complete, open (a partial, fine so far), torn, zero-filled, damaged, absent or unreadable; ``ok`` is said
    of complete alone. ``reason`` and ``frame`` (0-based) tell what is wrong and where, else None. ``frames`` and
    ``calls`` count what is intact from the start; ``head`` is the hash of the last intact frame, ``cassette`` the id
    that the header gives. ``path`` is the name as it was given. ``exit_status`` is 0, 1 for a finding, 2 if nothing
    can be said.

    ``signed``: the trusted keys named in ``signers`` signed it, and they are enough. ``unchecked``: there is a
    signature of this very cassette, and no key is trusted here. ``encrypted``: what was verified is the ciphertext, for
    which nobody needs a key. A complete cassette whose ``reason`` is not None is
    intact, and its signature is not what it should be (a reason of ``SignatureError``).
    """

    path: str
    state: str
    reason: str | None = None
    frame: int | None = None
    offset: int | None = None
    frames: int = 0
    calls: int = 0
    head: str | None = None
    cassette: str | None = None
    signed: bool = False
    signers: tuple[str, ...] = ()
    unchecked: bool = False
    encrypted: bool = False

    @property
    def ok(self) -> bool:
        """True if the cassette is whole, and signed as it should be."""
        return self.state == "complete" and self.reason is None

    @property
    def exit_status(self) -> int:
        """0 if ok, 2 if the file could not be judged, else 1."""
        return 0 if self.reason is None else self._error(self.reason).exit_status

    @property
    def message(self) -> str:
        """What is wrong, where, and what to do; for a whole cassette, what that proves."""
        if self.reason is not None:
            return str(self._error(self.reason))
        if self.signed:
            signed = f"signed by {', '.join(map(printable, self.signers))}"
        else:
            signed = "signature not checked: no key is trusted here" if self.unchecked else "unsigned"
        return f"intact, encrypted, {signed}" if self.encrypted else f"intact, {signed}"

    def _error(self, reason: str) -> CassetteError:
        if reason in SIGNATURE_REASONS:
            return SignatureError(reason)
        return FormatError(reason, frame=self.frame, offset=self.offset)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToolSummary:
    """One tool of a cassette: how many calls it has, and how they ended. ``effect``: read, write, pay or None."""

    tool: str
    boundary: str
    calls: int
    outcomes: dict[str, int]
    omitted: tuple[str, ...]
    effect: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inspection:
    """What a cassette says of itself, without arguments and values.

    ``origin``: for a cassette that was made from another file, the ``cassette`` id and the ``head`` (the last intact
    hash) of that one, and ``how`` (``salvage``); its header calls it ``from``. None for an original recording.
    ``rules`` are those that it was redacted by: a version of the default set, rules of one's own as ``id#digest``, and
    ``declared`` where values were named; empty where nothing was redacted.

    ``locked`` is why nothing can be told of the calls of an ``encrypted`` cassette (a reason of ``EncryptionError``):
    then ``include``, ``rules`` and ``tools`` are empty. None where it was opened.
    """

    path: str
    format: str
    cassette: str
    created: str
    producer: str
    include: tuple[str, ...]
    order: str
    sync: str
    frames: int
    calls: int
    outcomes: dict[str, int]
    rejected: int
    head: str
    signed: bool
    tools: tuple[ToolSummary, ...]
    origin: dict[str, str] | None = None
    rules: tuple[str, ...] = ()
    encrypted: bool = False
    locked: str | None = None


def verify(
    file: str | os.PathLike[str],
    *,
    deep: bool = False,
    store: Store | None = None,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    trusted_keys: Iterable[str] = (),
    require_signature: bool = False,
    threshold: int = 1,
) -> Report:
    """Whether a file is a whole cassette, as data. Never raises on a bad file, nor on an absent or unreadable one.

    ``deep`` decodes every value too, and proves that it is the canonical spelling. ``jobs`` work side by side on a
    large file, in threads and child processes of this interpreter; 0 means as many as there are cores. What is found
    does not depend on it. ``progress(done, size)`` is told how many bytes were read, some times a second. Memory does
    not grow with the file: a few of its largest frames, and no more.

    A signature that is there is judged. ``trusted_keys`` are verifier keys, or files of them; where there are some, a
    signature that none of them made is a finding. ``require_signature`` makes none at all a finding, ``threshold`` one
    that fewer keys made. What the environment says of keys outranks all three: see ``Options``.

    Raises ``ValueError`` for a number that cannot be, and ``SignatureError`` for a key that is none.
    """
    trust = trust_of(trusted_keys, required=require_signature, threshold=threshold)
    found = verify_all([(os.fspath(file), store or FileStore())], deep=deep, jobs=jobs, progress=progress, trust=trust)
    return found[0]


def verify_all(
    files: Sequence[tuple[str, Store]],
    *,
    deep: bool = False,
    jobs: int = 0,
    progress: Callable[[int, int], None] | None = None,
    trust: Trust | None = None,
) -> list[Report]:
    """As ``verify``, for many files, each in its store; the workers share them all. Reports come in the same order.

    ``trust`` None: that of the environment.
    """
    if jobs < 0:
        message = "jobs is a number of workers, or 0 for as many as there are cores"
        raise ValueError(message)
    size = sum(_size(path, store) for path, store in files) if progress is not None or jobs != 1 else 0
    tell = None if progress is None else _Progress(size, progress)
    trust = trust_of() if trust is None else trust
    workers = (jobs or cores()) if jobs != 1 and size >= SIDE_BY_SIDE_BYTES else 1
    if workers == 1:
        return [_judged(path, store, deep=deep, surveyors=None, tell=tell, trust=trust) for path, store in files]
    with Surveyors(workers) as surveyors:
        judge = functools.partial(_judged, deep=deep, surveyors=surveyors, tell=tell, trust=trust)
        return surveyors.each(files, judge)


def _size(path: str, store: Store) -> int:
    """Bytes of a file; 0 of one that cannot be read."""
    try:
        with store.open(path) as source:
            return source.size
    except (FormatError, ValueError):
        return 0


def _judged(
    path: str, store: Store, *, deep: bool, surveyors: Surveyors | None, tell: _Progress | None, trust: Trust
) -> Report:
    proof = _Proof(store, path, trust)
    reader = Reader(runs=proof.frames, deep=deep, line_bytes_max=LINE_BYTES_CEILING)
    try:
        with store.open(path) as source:
            blocks = source.blocks(_BLOCK_BYTES)
            if tell is not None:
                blocks = tell.counting(blocks)
            if surveyors is None:
                reader.feed_all(blocks)
            else:
                surveyors.feed_all(reader, blocks, deep=deep, hashes=proof.frames is not None)
            finding = reader.finish(partial=source.partial or source.live)
    except FormatError as error:
        return Report(path=path, state=state_of(error.reason), reason=error.reason)
    except ValueError:  # an empty name, a NUL in it
        return Report(path=path, state="absent", reason="absent")
    seen = reader.grammar
    report = Report(
        path=path,
        state=state_of(finding.reason if finding else None),
        reason=finding.reason if finding else None,
        frame=finding.frame if finding else None,
        offset=finding.offset if finding else None,
        frames=seen.frames,
        calls=seen.calls,
        head=reader.head if seen.frames else None,
        cassette=reader.header.cassette if reader.header is not None else None,
        encrypted=reader.header is not None and bool(reader.header.requires),
    )
    return report if reader.header is None or finding is not None else proof.judged(report, reader.header)


class _Proof:
    """What the signature of a cassette comes to. ``frames`` is None where there is nothing to judge it by."""

    def __init__(self, store: Store, path: str, trust: Trust) -> None:
        self._trust = trust
        self._data: bytes | None = None
        self._fault: SignatureError | None = None
        try:
            self._data = read_signature(store, path)
        except SignatureError as error:
            self._fault = error
        except ValueError:  # no name for a file: nor is there a cassette
            pass
        self.frames = None if self._data is None else FrameTree()

    def judged(self, report: Report, header: Header) -> Report:
        """The report on a whole cassette, with what its signature says."""
        try:
            if self._fault is not None:
                raise self._fault
            if self._data is None or self.frames is None:
                self._trust.require()
                return report
            tree = self.frames.tree
            signers = self._trust.judge(self._data, Checkpoint(header.cassette, tree.size, tree.root()))
        except SignatureError as error:
            return dataclasses.replace(report, reason=error.reason)
        return dataclasses.replace(report, signed=bool(signers), signers=signers, unchecked=not signers)


class _Progress:
    """Bytes read of ``size``, told now and then; by any thread, so it may be told less than was read."""

    def __init__(self, size: int, tell: Callable[[int, int], None]) -> None:
        self._size = size
        self._tell = tell
        self._done = 0
        self._told = time.monotonic()

    def counting(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The blocks, counted as they are used up."""
        for block in blocks:
            yield block
            self._done += len(block)
            if time.monotonic() - self._told >= _PROGRESS_SECONDS:
                self._told = time.monotonic()
                self._tell(self._done, self._size)


def read_cassette(
    file: str | os.PathLike[str], *, store: Store | None = None, identities: Iterable[str] = ()
) -> Cassette:
    """The verified cassette. Raises ``FormatError`` on any defect: half a cassette is never returned.

    An encrypted one is opened by the private keys in the files ``identities``; without any, by those of the
    environment. Raises ``EncryptionError`` where none of them does.
    """
    return read(store or FileStore(), os.fspath(file), identities=tuple(identities))


def inspect(file: str | os.PathLike[str], *, store: Store | None = None) -> Inspection:
    """What a cassette says of itself. Raises ``FormatError`` on any defect, and ``EncryptionError`` for a forged one.

    ``signed``: by as many keys of the environment as it asks for. Nothing is raised where it is not; ask ``verify``.
    """
    path, place = os.fspath(file), store or FileStore()
    try:
        beside = read_signature(place, path) is not None
    except SignatureError:
        beside = False
    signed = beside and verify(file, store=store).signed
    try:
        return inspection_of(path, read_cassette(file, store=store), signed=signed)
    except EncryptionError as error:
        if error.reason not in NO_KEY:
            raise
        return locked_inspection(path, place, error.reason, signed=signed)


def locked_inspection(path: str, store: Store, why: str, *, signed: bool = False) -> Inspection:
    """What an encrypted cassette says of itself to who cannot open it. Raises ``FormatError``."""
    reader = Reader(line_bytes_max=LINE_BYTES_CEILING)
    with store.open(path) as source:
        finding = reader.feed_all(source.blocks(_BLOCK_BYTES)).finish(partial=source.partial)
    if finding is not None:
        raise finding.as_error()
    assert reader.header is not None  # the grammar lets nothing else be whole
    assert reader.complete is not None
    found = _inspection(path, reader.header, reader.complete, reader.head, (), signed=signed)
    return dataclasses.replace(found, encrypted=True, locked=why)


def inspection_of(path: str, cassette: Cassette, *, signed: bool = False) -> Inspection:
    """What a cassette that was read says of itself. Raises ``FormatError`` as ``Cassette.call`` does."""
    header, complete = cassette.header, cassette.complete
    found = _inspection(path, header, complete, cassette.head, _tools(cassette), signed=signed)
    return dataclasses.replace(found, encrypted=cassette.encrypted)


def _inspection(
    path: str, header: Header, complete: Complete, head: str, tools: tuple[ToolSummary, ...], *, signed: bool
) -> Inspection:
    return Inspection(
        path=path,
        format=header.format,
        cassette=header.cassette,
        created=header.created,
        producer=header.producer,
        include=tuple(header.include),
        order=header.order,
        sync=header.sync,
        frames=complete.frames,
        calls=complete.calls,
        outcomes={
            "ok": complete.ok,
            "error": complete.error,
            "cancelled": complete.cancelled,
            "left_early": complete.left_early,
        },
        rejected=complete.rejected,
        head=head,
        signed=signed,
        tools=tools,
        origin=_origin(header.origin) if isinstance(header.origin, Origin) else None,
        rules=tuple(header.rules),
    )


def _origin(origin: Origin) -> dict[str, str]:
    return {"cassette": origin.cassette, "head": origin.head, "how": origin.how}


def _tools(cassette: Cassette) -> tuple[ToolSummary, ...]:
    calls: Counter[tuple[str, str]] = Counter()
    outcomes: dict[tuple[str, str], Counter[str]] = {}
    omitted: dict[tuple[str, str], set[str]] = {}
    effects: dict[tuple[str, str], str | None] = {}
    for call in cassette:
        key = (call.tool, call.boundary)
        calls[key] += 1
        outcomes.setdefault(key, Counter())[call.outcome] += 1
        omitted.setdefault(key, set()).update(call.omitted)
        effects[key] = call.effect or effects.get(key)
    return tuple(
        ToolSummary(
            tool=tool,
            boundary=boundary,
            calls=count,
            outcomes=dict(outcomes[tool, boundary]),
            omitted=tuple(sorted(omitted[tool, boundary])),
            effect=effects[tool, boundary],
        )
        for (tool, boundary), count in sorted(calls.items())
    )
