"""The verb that brings cassettes of one folder into another: ``merge``.

Rule: with a conflict or a finding nothing is written, and all of them are told.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Final

import click

from toolcassette.cli.looking import headline, report_fields
from toolcassette.cli.outlet import complain, say, say_json, shown
from toolcassette.merging import Merged, merge_cassettes

__all__ = ["merge_verb"]

_COULD_NOT_JUDGE: Final = 2
_FATES: Final = {"copied": "copied", "unchanged": "unchanged", "replaced": "replaced", "conflicts": "conflict"}


@click.command("merge", short_help="copy the cassettes of one folder into another")
@click.argument("source", metavar="SRC")
@click.argument("destination", metavar="DEST")
@click.option("--force", is_flag=True, help="replace other cassettes that stand in the way")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="how to say it")
def merge_verb(source: str, destination: str, force: bool, form: str) -> int:
    """Copy the cassettes of one folder into another, to the same relative places

    All are verified first. What DEST has already, but for ids and times, is left as it is; another cassette in the same
    place is a conflict, and then nothing is copied, unless --force replaces it.
    """
    if not os.path.isdir(source):  # noqa: PTH112 - a path stays as it was given
        raise click.UsageError("SRC is no folder")
    done = merge_cassettes(source, destination, force=force)
    if done == Merged():
        complain(f"{shown(source)}: no cassettes here")
        return _COULD_NOT_JUDGE
    if form == "json":
        facts = dataclasses.asdict(done) | {"findings": [report_fields(report) for report in done.findings]}
        say_json({**facts, "ok": done.ok, "exit_status": done.exit_status})
        return done.exit_status
    for fate, word in _FATES.items():
        for path in getattr(done, fate):
            say(f"{word}: {shown(path)}")
    for report in done.findings:
        say(headline(report))
    return done.exit_status
