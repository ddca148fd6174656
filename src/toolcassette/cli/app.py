"""The verbs together, and what each of their ends means as an exit status.

Rule: 0, everything asked for is true; 1, a finding; 2, could not judge; 130, Ctrl-C; 141, closed pipe. No traceback;
and of an error that should not be, no more than its class is shown: its text may hold a value.
"""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING, Final

import click

from toolcassette import __version__
from toolcassette.cli.checking import check_verb
from toolcassette.cli.inspecting import inspect_verb
from toolcassette.cli.keys import keygen_verb
from toolcassette.cli.locking import lock_verb
from toolcassette.cli.looking import ls_verb, schema_verb, verify_verb
from toolcassette.cli.mcp import mcp_group
from toolcassette.cli.merging import merge_verb
from toolcassette.cli.outlet import complain, finish, mute, ready_streams
from toolcassette.cli.proving import check_proof_verb, prove_verb
from toolcassette.cli.recovering import recover_verb
from toolcassette.cli.repository import git_group
from toolcassette.cli.reviewing import diff_verb, view_verb
from toolcassette.cli.rewrapping import rewrap_verb
from toolcassette.cli.running import record_verb, replay_verb
from toolcassette.cli.scanning import scan_verb
from toolcassette.cli.signing import attest_verb, sign_verb
from toolcassette.errors import CassetteError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_COULD_NOT_JUDGE: Final = 2
_INTERRUPTED: Final = 130
_PIPE_CLOSED: Final = 141

_HELP: Final = """Record the tool calls of an agent once, keep them in a cassette that proves itself, and replay them
with no tool run

\b
Exit status: 0 everything asked for is true; 1 a finding (damaged, open, mismatch, unconsumed, differs, secret found);
2 could not judge (usage, absent or unreadable file); 130 Ctrl-C; 141 closed pipe
"""


@click.group(help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="toolcassette", message="%(prog)s %(version)s", help="show the version")
def _app() -> None:
    """Hold the verbs."""


for _verb in (
    verify_verb,
    inspect_verb,
    ls_verb,
    merge_verb,
    record_verb,
    recover_verb,
    replay_verb,
    scan_verb,
    schema_verb,
    diff_verb,
    view_verb,
    git_group,
    attest_verb,
    check_proof_verb,
    keygen_verb,
    lock_verb,
    prove_verb,
    rewrap_verb,
    sign_verb,
    check_verb,
    mcp_group,
):
    _app.add_command(_verb)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: that of the process) and return its exit status; raises nothing.

    Results go to stdout, talk to stderr.
    """
    ready_streams()
    try:
        status = _mapped(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        mute(sys.stdout, sys.stderr)
        return _PIPE_CLOSED
    except OSError:  # what is left of a result that could not be written, which was told
        mute(sys.stdout)
        return _COULD_NOT_JUDGE
    except KeyboardInterrupt:  # a second one, while the first was told
        return _INTERRUPTED


def _mapped(args: list[str]) -> int:
    try:
        status = _invoke(args)
        finish()
        return status
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, click.Abort):
        complain("interrupted")
        return _INTERRUPTED
    except click.ClickException as error:
        complain(_in_our_voice(error))
        return _COULD_NOT_JUDGE
    except CassetteError as error:
        complain(str(error))
        return error.exit_status
    except OSError as error:
        complain(f"could not go on: {errno.errorcode.get(error.errno or 0, 'unknown error')}")
        return _COULD_NOT_JUDGE
    except Exception as error:  # noqa: BLE001 - whatever it is, it becomes a status and not a traceback
        complain(f"internal error: {type(error).__name__}; please report it, with the command")
        return _COULD_NOT_JUDGE


def _invoke(args: list[str]) -> int:
    # Not `main` of click: it ends every closed pipe and every Ctrl-C with 1, which is a finding here.
    if not args:
        sys.stderr.write(_app.get_help(click.Context(_app, info_name="toolcassette", **_app.context_settings)) + "\n")
        return _COULD_NOT_JUDGE
    try:
        with _app.make_context("toolcassette", args) as context:
            return int(_app.invoke(context) or 0)
    except click.exceptions.Exit as ended:
        return ended.exit_code


def _in_our_voice(error: click.ClickException) -> str:
    """What click says of a command line, without its capital and its period, and where to read on."""
    said = " ".join(error.format_message().split()).rstrip(".")
    said = said[:1].lower() + said[1:]
    if not isinstance(error, click.UsageError):
        return said
    verb = "toolcassette" if error.ctx is None else error.ctx.command_path
    return f"{said}; see {verb} --help"
