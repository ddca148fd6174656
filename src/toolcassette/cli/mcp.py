"""The verbs ``mcp record`` and ``mcp replay``: a stdio proxy between any MCP client and its server.

Theory. The client starts us as its server, so nobody looks at our exit status: the status file says what it would have
said, and ``check`` turns it into one. A file of an earlier run would speak for this one, so it must not exist.

Rule: standard output belongs to the client. What can be refused is refused before a byte is read.
"""

from __future__ import annotations

import errno
import importlib.util
from typing import TYPE_CHECKING, Any, Final

import click

from toolcassette.cli.keys import key_options, trust_for
from toolcassette.cli.outlet import complain, counted, in_flags, shown
from toolcassette.cli.running import redaction_flags, session_options
from toolcassette.engine import SYNC_POLICIES, Verdict
from toolcassette.errors import CassetteError, NotPublished
from toolcassette.process import claim_status, write_status
from toolcassette.session import record, replay

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolcassette.adapters.mcp_stdio import Ended
    from toolcassette.engine import Session

__all__ = ["mcp_group"]

_INCLUDE: Final = ["mcp*"]
_UNCHECKED: Final = "output schemas are not looked at without jsonschema: pip install 'toolcassette[jsonschema]'"

_status = click.option("--status", metavar="STATUS", help="a new file, for what the exit status says; see check")


@click.group("mcp", short_help="record and replay an MCP server, by a proxy on stdio")
def mcp_group() -> None:
    """Stand between an MCP client, in any language, and its server; speak MCP on standard input and output

    In the configuration of the client, put this in the place of the server's own command.
    """


@mcp_group.command("record", short_help="pass messages to a server and record them")
@click.option(
    "--sync", type=click.Choice(list(SYNC_POLICIES)), default="frame", help="when what was recorded is on disk"
)
@click.option("--replace", is_flag=True, help="re-record; the old cassette stays until the new one is whole")
@click.option("--set-aside", is_flag=True, help="rename a partial that another recorder left behind")
@_status
@redaction_flags
@click.argument("file", metavar="FILE")
@click.argument("command", metavar="-- SERVER...", nargs=-1, required=True, type=click.UNPROCESSED)
def _record(
    file: str,
    command: tuple[str, ...],
    sync: str,
    replace: bool,
    set_aside: bool,
    status: str | None,
    redact: tuple[str, ...],
    no_redact: bool,
    normalize: tuple[str, ...],
    secret_env: tuple[str, ...],
) -> int:
    """Start SERVER, pass on what it and the client say, and record it into the new cassette FILE

    The cassette appears when the client closes our input, if a tool was called, every request was answered, the server
    was still there and no signal came; else what was recorded stays in FILE.partial.
    """
    stale = "set-aside" if set_aside else "refuse"
    options = session_options(
        redact, no_redact, normalize, secret_env, order="causal", sync=sync, replace=replace, stale=stale
    )
    return _run(file, lambda: record(file, _INCLUDE, **_fields(options)), command, status)


@mcp_group.command("replay", short_help="answer from a cassette, with no server")
@click.option("--allow-unconsumed", is_flag=True, help="let recorded calls be left over")
@click.option(
    "--on-secret",
    type=click.Choice(["refuse", "warn", "ignore"]),
    default="refuse",
    help="where the cassette holds one",
)
@key_options
@_status
@redaction_flags
@click.argument("file", metavar="FILE")
def _replay(
    file: str,
    allow_unconsumed: bool,
    on_secret: str,
    keys: tuple[str, ...],
    require_signature: bool,
    threshold: int,
    status: str | None,
    redact: tuple[str, ...],
    no_redact: bool,
    normalize: tuple[str, ...],
    secret_env: tuple[str, ...],
) -> int:
    """Be the server that was recorded into FILE; no server is started

    A call that is not the recorded one is answered with an error, and so is every call after it. What counts is the
    exit status, and the status file, since clients go on.
    """
    trust = trust_for(keys, required=require_signature, threshold=threshold)
    options = session_options(
        redact,
        no_redact,
        normalize,
        secret_env,
        allow_unconsumed=allow_unconsumed,
        on_secret=on_secret,
        trusted_keys=tuple(map(str, trust.keys)),
        require_signature=trust.required,
        threshold=trust.threshold,
    )
    return _run(file, lambda: replay(file, **_fields(options)), (), status)


def _fields(options: Any) -> dict[str, Any]:
    return {name: getattr(options, name) for name in options.__dataclass_fields__}


def _run(file: str, make: Callable[[], Session], command: Sequence[str], status: str | None) -> int:
    """Open the session, serve, and say how it went. Returns the exit status."""
    from toolcassette.adapters.mcp_stdio import serve

    if status is not None:
        _claim(status)
    try:
        session = _opened(make)
    except CassetteError as error:
        if status is not None:
            write_status(status, Verdict(mode="", outcome="failed", error=error))
        complain(f"{shown(file)}: {in_flags(str(error))}")
        return error.exit_status
    judged: list[int] = []
    check_output = importlib.util.find_spec("jsonschema") is not None
    if not check_output:
        complain(f"note: {_UNCHECKED}")
    try:
        serve(
            session, command, lambda told: judged.append(_judge(file, session, told, status)), check_output=check_output
        )
    except OSError as error:
        session.close(error)
        why = errno.errorcode.get(error.errno or 0, "unknown error")
        raise click.ClickException(f"could not run {shown(command[0] if command else file)}: {why}") from None
    return judged[0]


def _claim(status: str) -> None:
    try:
        claim_status(status)
    except FileExistsError:
        advice = "remove it before each run: an old one would speak for this run"
        raise click.ClickException(f"{shown(status)} exists already; {advice}") from None
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else None
        raise click.ClickException(
            f"could not write {shown(status)}: {errno.errorcode.get(number or 0, 'no such name')}"
        ) from None


def _opened(make: Callable[[], Session]) -> Session:
    try:
        return make().open(any_thread=True)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _judge(file: str, session: Session, ended: Ended, status: str | None) -> int:
    """Say how a session went that is closed, here and in the status file. Returns the exit status."""
    verdict = session.verdict
    assert verdict is not None  # it is closed
    refused = ""
    if session.mode == "record" and ended.why and not _is_worse(verdict):
        refused = f"nothing was published, the partial is kept: {ended.why}"
    if status is not None:
        write_status(status, verdict, refused=refused)
    for note in verdict.notes:
        complain(f"note: {note}")
    if refused or verdict.error is not None:
        complain(f"{shown(file)}: {in_flags(refused or str(verdict.error))}")
    else:
        did = "replayed" if session.mode == "replay" else "recorded"
        did = "unchanged" if verdict.outcome == "unchanged" else did
        complain(f"{did} {shown(file)} ({counted(verdict.calls, 'call')}, {ended.tool_calls} of tools)")
    if ended.signal is not None and session.mode == "record":
        return 128 + ended.signal
    return 0 if verdict.error is None else verdict.error.exit_status


def _is_worse(verdict: Verdict) -> bool:
    """True where the recorder itself failed, which says more than how the client went."""
    error = verdict.error
    return not (isinstance(error, NotPublished) and error.reason == "block_raised")
