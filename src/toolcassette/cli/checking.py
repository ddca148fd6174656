"""The verb ``check``: what became of sessions that others were told of by status files.

A client that was served by a recording or a replay ends as it likes: the status file is what counts.

Rule: no status is a finding. Nothing was recorded, or nothing consumed.
"""

from __future__ import annotations

from typing import Final

import click

from toolcassette.cli.outlet import complain, counted, in_flags, say, shown
from toolcassette.errors import printable
from toolcassette.process import read_status

__all__ = ["check_verb"]

_MESSAGE_CHARS_MAX: Final = 65_536


@click.command("check", short_help="turn status files into an exit status")
@click.argument("paths", metavar="STATUS...", nargs=-1, required=True)
def check_verb(paths: tuple[str, ...]) -> int:
    """Say how each session ended that left a STATUS file, and fail unless all ended well

    The file is that of --status of mcp record and mcp replay. Run it when the client has ended. A file that is not
    there is a finding: its session never began.
    """
    return max(map(_checked, paths))


def _checked(path: str) -> int:
    try:
        status = read_status(path)
    except OSError:
        complain(f"{shown(path)}: this is no file that can be read; give the path of --status")
        return 2
    if status is None:
        say(f"{shown(path)}: no session began; check that the client starts the proxy, with this path as --status")
        return 1
    if status.ok:
        say(f"{shown(path)}: {printable(status.outcome)} ({counted(status.calls, 'call')})")
        return 0
    never = "the session never came to its end; let the client close it, and look at what the proxy wrote to stderr"
    say(f"{shown(path)}: {in_flags(printable(status.message or never, _MESSAGE_CHARS_MAX))}")
    return max(1, status.exit_status)
