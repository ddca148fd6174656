"""Sessions: ``record`` and ``replay`` for a block of code, and one for a whole process.

Rule: all options are one frozen ``Options``, validated in one place; environment, configuration files and command line
map onto it. The mode is chosen once, here, and is a class from then on.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from toolcassette._version import __version__
from toolcassette.crypto import SIGNATURES_MAX, read_signer, recipients_of, trust_of
from toolcassette.engine import (
    COMPLETIONS,
    MODE_VARIABLE,
    ORDERS,
    SYNC_POLICIES,
    Live,
    Recorder,
    RecorderSettings,
    Replayer,
    ReplayerSettings,
    Selection,
    Session,
)
from toolcassette.format import CALLS_MAX, LINE_BYTES_CEILING, LINE_BYTES_MAX
from toolcassette.redaction import DECLARED_MIN, OFF, Rules, rules_of
from toolcassette.stores import FileStore, Store
from toolcassette.telemetry import TracedRecorder, TracedReplayer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "FILE_VARIABLE",
    "INCLUDE_VARIABLE",
    "PRODUCER",
    "Options",
    "process_session",
    "record",
    "replay",
    "session",
    "session_from_env",
]

FILE_VARIABLE: Final = "TOOLCASSETTE_FILE"
INCLUDE_VARIABLE: Final = "TOOLCASSETTE_INCLUDE"  # patterns, separated by commas
PRODUCER: Final = f"toolcassette {__version__}"

_HEAD: Final = re.compile(r"[0-9a-f]{64}\Z")
_MODES: Final = ("live", "record", "replay")
_KEYS: Final = {
    "trusted_keys": "verifier keys, or paths of files of them",
    "recipients": "recipients, or paths of files of them",
    "identities": "paths of files of identities",
}
_CHOICES: Final[dict[str, tuple[str | None, ...]]] = {
    "order": (None, *ORDERS),
    "completion": COMPLETIONS,
    "sync": tuple(SYNC_POLICIES),
    "stale": ("refuse", "set-aside"),
    "cancelled": ("wait", "raise"),
    "on_secret": ("refuse", "warn", "ignore"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Every option of a session. Raises ``ValueError`` for a value that is none of those named.

    Recording: ``sync`` says when a frame is durable: ``frame`` (before the program goes on), ``call`` (a start rides on
    the next sync), ``close`` (when the session ends), ``none`` (nothing is promised before the cassette is published).
    ``stale``: what to do with a partial whose recorder is gone, ``refuse`` or ``set-aside``. ``replace`` re-records
    over an existing cassette, when the new one is whole. ``publish_on_error`` publishes although the block raised,
    ``allow_empty`` without a call.

    Replaying: ``allow_unconsumed`` lets records be left over. ``cancelled``: a recorded cancellation waits for the
    program's own (``wait``), at most as long as it took plus ``stall_after`` seconds, or raises at once (``raise``).

    ``order`` says which record a call may take: ``any`` (the next with its path, name and arguments), ``causal`` (and
    all that had ended before it began is consumed; calls that overlapped may start in any order), ``strict`` (and it is
    the next of its path in start order). Recording: ``strict`` if not given. Replaying: as recorded, or stricter.
    ``completion`` says when a replayed outcome goes out: ``recorded`` (when all that was recorded while the call was
    open has happened again; where nothing moves for ``stall_after`` seconds, held outcomes go out, with a note in the
    verdict), ``required`` (the same, but that is a mismatch), ``immediate``.

    Proof: ``sign`` is the path of a private key (``toolcassette keygen``): a cassette that was published is signed.
    Replaying: ``trusted_keys`` are verifier keys, or files of them, one a line; ``require_signature`` refuses a
    cassette that none of them signed, ``threshold`` one that fewer of them signed. ``expect_head`` (64 hex digits)
    refuses any cassette but the one whose last hash that is. Where the environment names keys
    (``TOOLCASSETTE_TRUSTED_KEYS``) or requires signatures (``TOOLCASSETTE_REQUIRE_SIGNATURE``), its keys alone count,
    and nothing here loosens it.

    Encryption: with ``recipients`` (the keys that ``toolcassette keygen --encryption`` prints, or files of them, one a
    line; at most 16) what is recorded is encrypted for them. Replaying: ``identities`` are files of the private keys
    that open it; else those of the environment (``TOOLCASSETTE_IDENTITY``).

    Both: ``redact`` is True (the default rules), False, or a list of rules of your own besides the default ones:
    names, JSON paths, patterns, functions, each bare or as ``tc.Redact``. ``secrets`` are values to redact wherever
    they stand, of 4 characters or more. ``normalize`` replaces what is no secret and differs from run to run:
    ``cwd``, ``home``, ``tmp``, ``uuid``, ``timestamp``, or rules of your own. A replay goes by the rule set of the
    cassette, and needs the same rules of your own. ``on_secret`` says what becomes of a replay whose cassette holds a
    secret: ``refuse`` (``SecretFound``), ``warn`` or ``ignore``. ``strict_include`` fails when a pattern of include
    selected nothing; ``line_bytes_max`` (bytes, at most 64 MiB) and ``calls_max`` are limits; ``store`` is where
    cassettes live. ``tracer`` (of OpenTelemetry, or anything with
    ``start_as_current_span``) is told of each call; with ``trace_values`` also of arguments and results, as the
    cassette holds them, and of what a tool's own exception says.
    """

    order: str | None = None
    completion: str = "recorded"
    sync: str = "frame"
    stale: str = "refuse"
    replace: bool = False
    publish_on_error: bool = False
    allow_empty: bool = False
    allow_unconsumed: bool = False
    strict_include: bool = False
    cancelled: str = "wait"
    stall_after: float = 5.0
    redact: bool | Sequence[object] = dataclasses.field(default=True, repr=False)
    secrets: Sequence[str] = dataclasses.field(default=(), repr=False)
    normalize: Sequence[object] = ()
    on_secret: str = "refuse"  # noqa: S105 - no password, a policy
    line_bytes_max: int = LINE_BYTES_MAX
    calls_max: int = CALLS_MAX
    sign: str | None = None
    trusted_keys: tuple[str, ...] = ()
    require_signature: bool = False
    threshold: int = 1
    expect_head: str | None = None
    recipients: tuple[str, ...] = ()
    identities: tuple[str, ...] = ()
    tracer: object = dataclasses.field(default=None, repr=False, compare=False)
    trace_values: bool = False
    store: Store = dataclasses.field(default_factory=FileStore, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                message = f"{name} must be one of {', '.join(filter(None, allowed))}"
                raise ValueError(message)
        if not self.stall_after >= 0:
            message = "stall_after must be a number of seconds, 0 or more"
            raise ValueError(message)
        if not 1024 <= self.line_bytes_max <= LINE_BYTES_CEILING:
            message = f"line_bytes_max must be between 1024 and {LINE_BYTES_CEILING} bytes"
            raise ValueError(message)
        if self.calls_max < 1:
            message = "calls_max must be at least 1"
            raise ValueError(message)
        if isinstance(self.secrets, str) or any(len(str(value)) < DECLARED_MIN for value in self.secrets):
            message = (
                f"secrets must be a list of texts of at least {DECLARED_MIN} characters: shorter ones stand everywhere"
            )
            raise ValueError(message)
        _ = self.rules  # a bad rule is an error here
        self._check_proof()

    @functools.cached_property
    def rules(self) -> Rules:
        """The rules of redaction, compiled."""
        if self.redact is False:
            return OFF
        own = () if self.redact is True else self.redact
        for name, given in (("redact", own), ("normalize", self.normalize)):
            if isinstance(given, str) or not isinstance(given, Sequence):
                message = f"{name} must be a list of rules"
                raise ValueError(message)  # noqa: TRY004 - every fault of an option is a ValueError
        return rules_of(own, self.normalize, declared=bool(self.secrets))

    def _check_proof(self) -> None:
        for name, what in _KEYS.items():
            given = getattr(self, name)
            keys = (given,) if isinstance(given, str) else tuple(given)
            object.__setattr__(self, name, keys)
            if not all(isinstance(key, str) and key for key in keys):
                message = f"{name} must be {what}, as text"
                raise ValueError(message)
        if not 1 <= self.threshold <= SIGNATURES_MAX:
            message = f"threshold is a number of keys, 1 to {SIGNATURES_MAX}"
            raise ValueError(message)
        if self.expect_head is not None and not _HEAD.match(self.expect_head):
            message = "expect_head is the last hash of a cassette: 64 lower-case hex digits"
            raise ValueError(message)


def record(file: str | os.PathLike[str], include: Iterable[str], **options: Any) -> Recorder:
    """A session that runs the selected tools for real and records them into a new cassette.

    ``include`` names tools, with ``*`` for any run of characters; ``options`` are those of ``Options``. Use it with
    ``with`` or ``async with``. Raises ``ValueError`` for bad options at once, ``SignatureError`` for a key that cannot
    sign and ``EncryptionError`` for a recipient that is none; opening raises ``CassetteExists`` or ``StoreError``,
    leaving raises what kept it from being published.
    """
    return _recorder(_file(file), Selection(include), Options(**options), publish=True)


def replay(file: str | os.PathLike[str], include: Iterable[str] | None = None, **options: Any) -> Replayer:
    """A session that answers the selected tools from a cassette and runs none of their bodies.

    Without ``include`` the cassette's own decides, and a wrapped tool outside it raises ``NotSelected``; with it, other
    tools run for real, and it must select every recorded tool (else ``ValueError`` on opening). Opening raises
    ``FormatError``, ``SignatureError`` or ``EncryptionError``; leaving ``CassetteMismatch`` or ``UnconsumedCalls``.
    """
    selection = None if include is None else Selection(include)
    return _replayer(_file(file), selection, Options(**options))


def session(
    mode: str,
    file: str | os.PathLike[str] | None = None,
    include: Iterable[str] | None = None,
    **options: Any,
) -> Session:
    """``record``, ``replay`` or ``live`` (every tool runs for real, nothing is kept), with the mode as a value.

    Raises ``ValueError`` for an unknown mode, or where the mode needs a file or an include and has none.
    """
    if mode not in _MODES:
        message = f"mode must be one of {', '.join(_MODES)}"
        raise ValueError(message)
    if mode == "live":
        Options(**options)
        return Live()
    if file is None:
        message = f"mode {mode} needs a file"
        raise ValueError(message)
    if mode == "replay":
        return replay(file, include, **options)
    if include is None:
        message = "mode record needs include: which tools to record"
        raise ValueError(message)
    return record(file, include, **options)


def session_from_env(environ: Mapping[str, str] | None = None, **options: Any) -> Session:
    """The session that ``TOOLCASSETTE_MODE``, ``_FILE`` and ``_INCLUDE`` (commas between) describe; ``live`` with
    nothing set.

    Raises ``ValueError`` as ``session`` does.
    """
    env = os.environ if environ is None else environ
    include = env.get(INCLUDE_VARIABLE)
    return session(
        env.get(MODE_VARIABLE) or "live",
        env.get(FILE_VARIABLE) or None,
        include.split(",") if include else None,
        **options,
    )


def process_session(mode: str, file: str, selection: Selection | None, options: Options) -> Session:
    """The session of a process that a parent started: a recording is finished here and published by the parent."""
    _file(file)
    if mode == "replay":
        return _replayer(file, selection, options)
    if mode != "record":
        message = "mode must be record or replay"
        raise ValueError(message)
    if selection is None:
        message = "mode record needs include: which tools to record"
        raise ValueError(message)
    return _recorder(file, selection, options, publish=False)


def _file(file: str | os.PathLike[str]) -> str:
    name = os.fspath(file)
    if not isinstance(name, str) or not name:
        message = "file must be the path of a cassette, as text"
        raise ValueError(message)
    return name


def _recorder(file: str, selection: Selection, options: Options, *, publish: bool) -> Recorder:
    settings = RecorderSettings(
        producer=PRODUCER,
        order=options.order or "strict",
        sync=options.sync,
        replace=options.replace,
        set_aside=options.stale == "set-aside",
        publish=publish,
        publish_on_error=options.publish_on_error,
        allow_empty=options.allow_empty,
        strict_include=options.strict_include,
        line_bytes_max=options.line_bytes_max,
        calls_max=options.calls_max,
        rules=options.rules,
        secrets=tuple(options.secrets),
        signer=read_signer(options.sign) if options.sign is not None and publish else None,
        recipients=recipients_of(options.recipients),
    )
    if options.tracer is not None:
        return TracedRecorder(
            options.store, file, selection, settings, tracer=options.tracer, values=options.trace_values
        )
    return Recorder(options.store, file, selection, settings)


def _replayer(file: str, selection: Selection | None, options: Options) -> Replayer:
    settings = ReplayerSettings(
        order=options.order,
        completion=options.completion,
        calls_max=options.calls_max,
        allow_unconsumed=options.allow_unconsumed,
        strict_include=options.strict_include,
        cancelled=options.cancelled,
        stall_after=options.stall_after,
        rules=options.rules,
        secrets=tuple(options.secrets),
        on_secret=options.on_secret,
        trust=trust_of(options.trusted_keys, required=options.require_signature, threshold=options.threshold),
        expect_head=options.expect_head,
        identities=options.identities,
    )
    if options.tracer is not None:
        return TracedReplayer(
            options.store, file, selection, settings, tracer=options.tracer, values=options.trace_values
        )
    return Replayer(options.store, file, selection, settings)
