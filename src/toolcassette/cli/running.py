"""Verbs that run a command with a session around it: ``record`` and ``replay``.

Theory. The child records or replays and says in its status how that went; only the parent knows how the child itself
ended, so it is the parent who publishes, and who has the last word. The command's own nonzero status passes through;
else a session that failed makes it 1, or 2 where it could not be judged, whatever the command made of its errors.

Rule: what can be refused is refused before the command runs.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from toolcassette.cli.child import run
from toolcassette.cli.keys import key_options, trust_for
from toolcassette.cli.outlet import complain, counted, in_flags, shown
from toolcassette.cli.scanning import secrets_of
from toolcassette.crypto import SIGNATURE_SUFFIX, read_signer, recipients_of
from toolcassette.engine import SYNC_POLICIES, Selection, publish_finished, sign_published, stale_note
from toolcassette.errors import CassetteError, CassetteExists, FormatError, printable
from toolcassette.redaction import NORMALISERS
from toolcassette.session import Options, record, replay
from toolcassette.stores import FileStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcassette.cli.child import Ended
    from toolcassette.crypto import Signer
    from toolcassette.process import Status

__all__ = ["record_verb", "redaction_flags", "replay_verb", "session_options"]

_F = TypeVar("_F", bound=Callable[..., Any])

_STORE: Final = FileStore()
_ON_SECRET: Final = {"refuse": "refuse", "warn": "ignore", "ignore": "ignore"}  # and what the parent itself does
_NO_VERDICT: Final = "the process that made the calls ended without a verdict; let it end by itself, not by os._exit"
_NO_CALL: Final = "no selected tool was called; check include, and that the command wraps its tools with toolcassette"


_REDACTION: Final = (
    click.option("--redact", "redact", metavar="RULE", multiple=True, help="redact by this name or JSON path too"),
    click.option("--no-redact", is_flag=True, help="redact nothing"),
    click.option("--normalize", metavar="WORD", multiple=True, help=f"replace what differs: {', '.join(NORMALISERS)}"),
    click.option("--secret-env", metavar="NAME", multiple=True, help="redact the value of this variable everywhere"),
)


def _redaction(
    redact: Sequence[str], no_redact: bool, normalize: Sequence[str], secret_env: Sequence[str]
) -> dict[str, Any]:
    """The options of a session that these flags stand for. Raises ``click.UsageError``."""
    if no_redact and (redact or normalize or secret_env):
        raise click.UsageError("--no-redact goes without --redact, --normalize and --secret-env")
    return {
        "redact": False if no_redact else redact or True,
        "normalize": normalize,
        "secrets": secrets_of(secret_env),
    }


def redaction_flags(verb: _F) -> _F:
    """The flags that say what is redacted; ``session_options`` takes their values."""
    for option in reversed(_REDACTION):
        verb = option(verb)
    return verb


def session_options(
    redact: Sequence[str], no_redact: bool, normalize: Sequence[str], secret_env: Sequence[str], **told: Any
) -> Options:
    """The options of a session, of the flags of redaction and others. Raises ``click.UsageError``."""
    return _options(**_redaction(redact, no_redact, normalize, secret_env), **told)


def _options(**told: Any) -> Options:
    """The options of a session. Raises ``click.UsageError`` for one that cannot be."""
    try:
        return Options(**told)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _command(verb: _F) -> _F:
    """The arguments that both verbs take."""
    verb = click.argument("command", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED)(verb)
    verb = click.argument("file", metavar="FILE")(verb)
    verb = redaction_flags(verb)
    return click.option(
        "--strict-include/--no-strict-include",
        default=True,
        help="fail where a pattern of include selected nothing (the default)",
    )(verb)


@click.command("record", short_help="run a command and record its tool calls")
@click.option(
    "--include", "patterns", metavar="P", multiple=True, required=True, help="tools to record; * is a glob; repeat it"
)
@click.option(
    "--sync", type=click.Choice(list(SYNC_POLICIES)), default="frame", help="when what was recorded is on disk"
)
@click.option("--replace", is_flag=True, help="re-record; the old cassette stays until the new one is whole")
@click.option("--set-aside", is_flag=True, help="rename a partial that another recorder left behind")
@click.option("--allow-empty", is_flag=True, help="publish a cassette without a call too")
@click.option("--publish-on-error", is_flag=True, help="publish although the command fails")
@click.option("--sign", "key", metavar="KEY_FILE", help="sign the cassette that was published")
@click.option(
    "--recipient", "recipients", metavar="KEY", multiple=True, help="encrypt for a recipient, or a file; repeat it"
)
@_command
def record_verb(
    file: str,
    command: tuple[str, ...],
    patterns: tuple[str, ...],
    sync: str,
    replace: bool,
    set_aside: bool,
    allow_empty: bool,
    publish_on_error: bool,
    key: str | None,
    recipients: tuple[str, ...],
    strict_include: bool,
    redact: tuple[str, ...],
    no_redact: bool,
    normalize: tuple[str, ...],
    secret_env: tuple[str, ...],
) -> int:
    """Run a command and record the tool calls that it makes into the new cassette FILE

    A command that ends in .py runs under this Python. The cassette appears when the command has ended well; else what
    was recorded stays in FILE.partial. The command's own nonzero status passes through.
    """
    options = _options(
        **_redaction(redact, no_redact, normalize, secret_env),
        recipients=_recipients(recipients),
        sync=sync,
        stale="set-aside" if set_aside else "refuse",
        replace=replace,
        allow_empty=allow_empty,
        publish_on_error=publish_on_error,
        strict_include=strict_include,
    )
    include = _include(patterns)
    try:
        name = _absolute(file)
        signer = None if key is None else read_signer(key)
        _refuse_early(name, options, signer)
        ended = run(command, "record", name, include, options, secret_env)
        return _Recording(file, name, include, options, signer).judge(ended)
    except CassetteError as error:
        complain(f"{shown(file)}: {in_flags(str(error))}")
        return error.exit_status


@click.command("replay", short_help="run a command and answer its tool calls from a cassette")
@click.option(
    "--include", "patterns", metavar="P", multiple=True, help="tools to replay; others run for real; repeat it"
)
@click.option("--allow-unconsumed", is_flag=True, help="let recorded calls be left over")
@click.option("--on-secret", type=click.Choice(list(_ON_SECRET)), default="refuse", help="if the cassette holds one")
@key_options
@click.option("--identity", "identities", metavar="FILE", multiple=True, help="opens an encrypted one; repeat it")
@_command
def replay_verb(
    file: str,
    command: tuple[str, ...],
    patterns: tuple[str, ...],
    allow_unconsumed: bool,
    on_secret: str,
    keys: tuple[str, ...],
    require_signature: bool,
    threshold: int,
    identities: tuple[str, ...],
    strict_include: bool,
    redact: tuple[str, ...],
    no_redact: bool,
    normalize: tuple[str, ...],
    secret_env: tuple[str, ...],
) -> int:
    """Run a command and answer its tool calls from the cassette FILE; no tool body runs

    A command that ends in .py runs under this Python. It fails where a call is not the recorded one or a recorded call
    is left over, also if the command takes no notice. The command's own nonzero status passes through. Without
    --include, tools that the cassette does not know are refused.
    """
    trust = trust_for(keys, required=require_signature, threshold=threshold)
    options = _options(
        **_redaction(redact, no_redact, normalize, secret_env),
        allow_unconsumed=allow_unconsumed,
        on_secret=on_secret,
        strict_include=strict_include,
        trusted_keys=tuple(map(str, trust.keys)),  # as keys: the child may be in another folder
        require_signature=trust.required,
        threshold=trust.threshold,
        identities=tuple(map(_absolute, identities)),
    )
    include = _include(patterns) if patterns else None
    try:
        name = _absolute(file)
        recorded = _recorded_calls(name, include, options)
        ended = run(command, "replay", name, include, options, secret_env)
        return _judge_replay(file, recorded, ended)
    except CassetteError as error:
        complain(f"{shown(file)}: {in_flags(str(error))}")
        return error.exit_status


def _fields(options: Options) -> dict[str, Any]:
    return {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}


# -- before the command runs -----------------------------------------------------------------------------------------


def _include(patterns: Sequence[str]) -> tuple[str, ...]:
    """The patterns, also of one value with commas between, as the environment has them. Raises ``click.UsageError``."""
    try:
        return Selection(part for pattern in patterns for part in pattern.split(",")).patterns
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _recipients(given: Sequence[str]) -> tuple[str, ...]:
    """Recipients as keys: the child may be in another folder. Raises ``click.UsageError``, ``EncryptionError``."""
    try:
        return tuple(map(str, recipients_of(given)))
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _absolute(file: str) -> str:
    """The path for the child, which may change its directory. ``..`` stays: with links, only the system knows it."""
    return os.path.join(os.getcwd(), file) if file else file  # noqa: PTH109, PTH118 - pathlib would normalise


def _refuse_early(name: str, options: Options, signer: Signer | None) -> None:
    """Raise what the recorder would on opening: ``CassetteExists``, ``StoreError``; for a name ``click.UsageError``."""
    try:
        spool = _STORE.adopt(name)
    except FormatError:
        pass  # no partial
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    else:
        spool.keep()
        if options.stale == "refuse":
            raise CassetteExists("stale_partial")
    if not options.replace and os.path.lexists(name):
        raise CassetteExists("cassette")
    if not options.replace and signer is not None and os.path.lexists(name + SIGNATURE_SUFFIX):
        raise CassetteExists("signature")


def _recorded_calls(name: str, include: Sequence[str] | None, options: Options) -> int:
    """Open the replay once, as the child will, to see that it can be. Returns the number of recorded calls."""
    # The child warns; to warn here too would say the same twice.
    quiet = dataclasses.replace(options, on_secret=_ON_SECRET[options.on_secret])
    try:
        session = replay(name, include, **_fields(quiet))
        with warnings.catch_warnings(action="ignore"):
            session.open()
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    recorded = len(session.cassette)
    session.close()
    return recorded


# -- when it has ended -----------------------------------------------------------------------------------------------


def _by_signal(ended: Ended) -> str:
    number = ended.signal or 0
    try:
        return f"the command was ended by {signal.Signals(number).name}"
    except ValueError:  # a real-time signal
        return f"the command was ended by signal {number}"


def _tell_code(ended: Ended) -> None:
    if ended.code:
        complain(f"the command ended with status {ended.code}")


def _notes(status: Status) -> None:
    for note in status.notes:
        complain(f"note: {note}")


class _Recording:
    """What the parent does with a recording, when the command has ended."""

    def __init__(self, file: str, name: str, include: Sequence[str], options: Options, signer: Signer | None) -> None:
        self._file = shown(file)
        self._name = name
        self._include = include
        self._options = options
        self._signer = signer

    def judge(self, ended: Ended) -> int:
        """Publish, or say why not. Returns the exit status; raises ``CassetteError`` where publishing fails."""
        if ended.signal is not None:
            complain(f"{_by_signal(ended)}; {self._kept()}")
            return ended.code
        _tell_code(ended)
        status = ended.status
        if status is not None and not status.ok:
            complain(f"{self._file}: {in_flags(status.message or _NO_VERDICT)}; {self._kept()}")
            return ended.code or status.exit_status
        if ended.code and not self._options.publish_on_error:
            complain(f"{self._file}: {self._kept()}; mend the command, or pass --publish-on-error")
            return ended.code
        if status is None:
            return ended.code or self._nothing()
        _notes(status)
        self._publish(status.calls)
        return ended.code

    def _kept(self) -> str:
        kept = ", the partial is kept" if _STORE.has_partial(self._name) else ""
        return f"nothing was published{kept}"

    def _nothing(self) -> int:
        if not self._options.allow_empty:
            complain(f"{self._file}: nothing was recorded: {_NO_CALL}; or pass --allow-empty")
            return 1
        with record(self._name, self._include, **_fields(self._options)):
            pass  # the session of a command that made no call
        complain(f"recorded {self._file} (0 calls)")
        self._sign("published")
        return 0

    def _publish(self, calls: int) -> None:
        outcome = publish_finished(_STORE, self._name, replace=self._options.replace)
        said = {
            "published": f"recorded {self._file} ({counted(calls, 'call')})",
            "unchanged": f"unchanged {self._file} ({counted(calls, 'call')}): the run said nothing new, the file stays",
        }
        complain(said[outcome])
        self._sign(outcome)

    def _sign(self, outcome: str) -> None:
        if self._signer is not None:
            sign_published(_STORE, self._name, self._signer, outcome)
            complain(f"signed {self._file} by {printable(self._signer.verifier.name)}")
        elif self._options.replace and outcome == "published":
            for note in stale_note(_STORE, self._name):
                complain(f"note: {note}")


def _judge_replay(file: str, recorded: int, ended: Ended) -> int:
    """Say how the replay went. Returns the exit status."""
    status = ended.status
    if ended.signal is not None:
        complain(f"{_by_signal(ended)}; the replay was not judged")
        return ended.code
    _tell_code(ended)
    if status is None:
        if not recorded:
            complain(f"replayed {shown(file)} (0 calls)")
            return ended.code
        complain(f"{shown(file)}: nothing was replayed: {_NO_CALL}")
        return ended.code or 1
    if not status.ok:
        complain(f"{shown(file)}: {in_flags(status.message or _NO_VERDICT)}")
        return ended.code or status.exit_status
    _notes(status)
    whole = status.calls == recorded
    calls = f"{counted(recorded, 'call')}, all" if whole else f"{status.calls} of {counted(recorded, 'call')}"
    complain(f"replayed {shown(file)} ({calls} consumed)")
    return ended.code
