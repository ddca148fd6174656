"""Verbs that look at cassettes and say in what state they are: ``verify``, ``ls``, ``schema``.

Rule: all inputs are judged, also after a bad one; of their exit statuses 2 beats 1 beats 0.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from toolcassette import listing
from toolcassette.cli.differing import in_summary
from toolcassette.cli.inputs import expand, listed
from toolcassette.cli.keys import key_options, trust_for
from toolcassette.cli.locked import Locked
from toolcassette.cli.outlet import complain, counted, progressing, say, say_json, shown, table
from toolcassette.errors import printable
from toolcassette.format import json_schemas
from toolcassette.stores import FileStore
from toolcassette.verify import verify_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from toolcassette.listing import Listed
    from toolcassette.verify import Report

__all__ = ["Annotation", "annotate", "headline", "ls_verb", "report_fields", "schema_verb", "verify_verb"]

_HEAD_CHARS: Final = 8  # enough to compare by eye
_COLUMNS: Final = ("state", "kind", "calls", "created", "cassette", "tools", "models")
_ANNOTATIONS_SHOWN: Final = 10  # GitHub shows as many errors of a step


def headline(report: Report) -> str:
    """One line on the state of a cassette, safe to print."""
    if not report.ok:
        return f"{shown(report.path)}: {_verdict(report)}: {report.message}"
    facts = (
        f"{counted(report.frames, 'frame')}, {counted(report.calls, 'call')}, head {(report.head or '')[:_HEAD_CHARS]}"
    )
    return f"{shown(report.path)}: {report.message} ({facts})"


def _verdict(report: Report) -> str:
    """The state, in a word; of an intact cassette, what is wrong with it all the same."""
    return "not proven" if report.state == "complete" and not report.ok else report.state


def report_fields(report: Report) -> dict[str, Any]:
    """A report as a JSON object."""
    return {
        **dataclasses.asdict(report),
        "ok": report.ok,
        "exit_status": report.exit_status,
        "message": report.message,
    }


def _as_text(reports: Sequence[Report]) -> None:
    for report in reports:
        say(headline(report))


def _as_json(reports: Sequence[Report]) -> None:
    say_json([report_fields(report) for report in reports])


def _as_github(reports: Sequence[Report]) -> None:
    annotate(
        [
            Annotation(report.path, report.frame, f"cassette {_verdict(report)}", report.message, headline(report))
            for report in reports
            if not report.ok
        ]
    )


class Annotation(NamedTuple):
    """One finding for GitHub Actions: where, under which title, in which words; and ``headline`` on a line of its own.

    ``frame``: 0-based, or None where no line is at fault. ``headline`` must be safe to show.
    """

    path: str
    frame: int | None
    title: str
    message: str
    headline: str


def annotate(bad: Sequence[Annotation]) -> None:
    """Annotations of GitHub Actions, one a finding; a frame is a line, and lines count from 1.

    GitHub shows the first few of a step: the others are in its log all the same, and go into the step's summary.
    """
    for path, frame, title, message, _ in bad:
        line = "" if frame is None else f",line={frame + 1}"
        place = _escaped(shown(path)).replace(":", "%3A").replace(",", "%2C")
        say(f"::error file={place}{line},title={title}::{_escaped(message)}")
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary and len(bad) > _ANNOTATIONS_SHOWN:
        _append(summary, _summary(bad[_ANNOTATIONS_SHOWN:]))


def _summary(bad: Sequence[Annotation]) -> Iterator[str]:
    """Markdown: each line in the block stands behind a mark, so that no path can end it."""
    yield from ("### Cassettes", "", f"{counted(len(bad), 'finding')} more than are shown as annotations:", "")
    yield from ("```text", *(f"- {item.headline}" for item in bad), "```")


def _append(file: str, lines: Iterable[str]) -> None:
    """Add to the step's summary; a summary that cannot be written takes nothing from the verdict."""
    try:
        with Path(file).open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as stream:
            stream.writelines(f"{line}\n" for line in in_summary(lines))
    except (OSError, ValueError):
        complain("could not write the summary of this step")


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


_VERIFY_FORMATS: Final[dict[str, Callable[[Sequence[Report]], None]]] = {
    "text": _as_text,
    "json": _as_json,
    "github": _as_github,
}


@click.command("verify", short_help="judge whether files are whole cassettes")
@click.argument("paths", metavar="PATH...", nargs=-1)
@click.option("--deep", is_flag=True, help="decode every value too, and prove its canonical spelling")
@click.option("--files-from", metavar="FILE", help="judge the files listed in FILE too, one a line; - for stdin")
@click.option("-j", "--jobs", type=click.IntRange(min=0), default=0, help="workers side by side; 0: as many as help")
@click.option("--format", "form", type=click.Choice(list(_VERIFY_FORMATS)), default="text", help="how to say it")
@key_options
@click.option("--locked", is_flag=True, help="each must be the one that ./cassettes.lock names; PATH may be left out")
@click.option("--policy-from", metavar="REV", help="trust the keys of pytest's configuration in that git revision")
def verify_verb(
    paths: tuple[str, ...],
    deep: bool,
    files_from: str | None,
    jobs: int,
    form: str,
    keys: tuple[str, ...],
    require_signature: bool,
    threshold: int,
    locked: bool,
    policy_from: str | None,
) -> int:
    """Judge whether files are whole cassettes

    A PATH is a file, a folder (every *.cassette.jsonl in it, partials too) or - for stdin. An intact cassette is what
    its recorder wrote; unsigned, it does not prove who that was. A signature (FILE.sig) is judged where there is one.
    Keys are those of --key, else of TOOLCASSETTE_TRUSTED_KEYS, else of --policy-from.
    """
    trust = trust_for(keys, required=require_signature, threshold=threshold, policy_from=policy_from)
    chosen = [*paths, *(listed(files_from) if files_from is not None else ())]
    if not chosen and not locked:
        raise click.UsageError("missing argument 'PATH...'")
    lock = Locked() if locked else None
    files = [(item.path, item.store) for item in expand(chosen or ["."])]
    if lock is not None:
        files += [(path, FileStore()) for path in lock.missing(chosen or ["."], [path for path, _ in files])]
    with progressing("verifying") as progress:
        reports = verify_all(files, deep=deep, jobs=jobs, progress=progress, trust=trust)
    if lock is not None:
        reports = [lock.judged(report) for report in reports]
    _VERIFY_FORMATS[form](reports)
    return max(report.exit_status for report in reports)


@click.command("ls", short_help="list the cassettes in folders")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="how to say it")
def ls_verb(paths: tuple[str, ...], form: str) -> int:
    """List the cassettes in folders: state, kind, calls, when created, tools and models

    A PATH is a file, a folder (default: the one you are in) or - for stdin. Recordings that were not published are
    listed as open. Kind, tools and models are those of whole cassettes.
    """
    found: list[Listed] = []
    for item in expand(paths or (".",)):
        row = listing.listed(item.path, store=item.store)
        if item.folder and row.report.reason == "not_a_file":
            complain(f"{shown(item.path)}: no cassettes here")
        else:
            found.append(row)
    if form == "json":
        say_json([_row_fields(row) for row in found])
    elif found:
        for line in table(_COLUMNS, map(_row, found)):
            say(line)
    return max((row.report.exit_status for row in found), default=0)


def _row_fields(row: Listed) -> dict[str, Any]:
    facts = {"kind": row.kind, "tools": row.tools, "models": row.models, "created": row.created}
    return {**report_fields(row.report), **facts}


def _row(row: Listed) -> tuple[str, ...]:
    report = row.report
    created = (row.created or "-").partition(".")[0]  # to the second
    names = [", ".join(map(printable, some)) or "-" if some is not None else "-" for some in (row.tools, row.models)]
    state = report.state if report.ok else _verdict(report)
    return state, row.kind or "-", str(report.calls), created, shown(report.path), *names


@click.command("schema", short_help="print the JSON Schema of the format")
@click.argument("what", type=click.Choice(["frame", "error"]), default="frame", metavar="[frame|error]")
def schema_verb(what: str) -> int:
    """Print the JSON Schema of one frame (a line of a cassette), or of what the member error of a frame holds"""
    say_json(json_schemas()[f"{what}.schema.json"])
    return 0
