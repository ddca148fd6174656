"""The verb ``inspect``: what a cassette says of itself, and its calls.

Rule: nothing that was made from an argument or a value is shown, unless ``--show-values`` asks for it; half a cassette
is never shown.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from toolcassette.cli.inputs import expand
from toolcassette.cli.looking import report_fields
from toolcassette.cli.outlet import complain, counted, say, say_json, shown, table
from toolcassette.content import with_stand_ins
from toolcassette.errors import EncryptionError, FormatError, printable
from toolcassette.format import state_of
from toolcassette.verify import NO_KEY, inspection_of, locked_inspection, read_cassette, verify

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolcassette.cli.inputs import Input
    from toolcassette.format import RecordedCall
    from toolcassette.verify import Inspection, Report

__all__ = ["inspect_verb"]

_SEALED: Final = "sealed: no key is here"
_VALUE_CHARS_MAX: Final = 400  # what one looks at; --format json has it whole


class _View(NamedTuple):
    """One whole cassette, and what ``verify`` says of it."""

    report: Report
    summary: Inspection
    calls: list[RecordedCall]


@click.command("inspect", short_help="show what a cassette holds")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--show-values", is_flag=True, help="show arguments and results too: they may be secret")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="how to say it")
def inspect_verb(paths: tuple[str, ...], show_values: bool, form: str) -> int:
    """Show what a cassette holds: where it comes from, its tools, its calls in order

    A PATH is a file, a folder (every *.cassette.jsonl in it) or - for stdin. A partial is no cassette: it is named, and
    nothing of it is shown. Arguments and results are shown only with --show-values.
    """
    statuses: list[int] = []
    views: list[_View] = []
    for item in expand(paths):
        report, view, closed = _look(item)
        statuses.append(report.exit_status if closed is None else closed.exit_status)
        if closed is not None:
            complain(f"{shown(report.path)}: {closed}")
        if item.folder and report.reason == "not_a_file":
            complain(f"{shown(item.path)}: no cassette in this folder")
        elif view is None and closed is None:
            complain(f"{shown(report.path)}: {report.state}: {report.message}")
        elif view is not None:
            views.append(view)
    if form == "json":
        say_json([_fields(view, show_values=show_values) for view in views])
    else:
        for number, view in enumerate(views):
            for line in (*([""] if number else ()), *_text(view, show_values=show_values)):
                say(line)
    return max(statuses)


def _look(item: Input) -> tuple[Report, _View | None, EncryptionError | None]:
    """What can be said of an input: its state, and all of it if it is whole; why not all, if it is closed to us."""
    report = verify(item.path, deep=True, store=item.store)
    if report.state != "complete":
        return report, None, None
    try:
        cassette = read_cassette(item.path, store=item.store)
        return report, _View(report, inspection_of(item.path, cassette, signed=report.signed), list(cassette)), None
    except EncryptionError as error:
        if error.reason not in NO_KEY:
            return report, None, error
        known = locked_inspection(item.path, item.store, error.reason, signed=report.signed)
        return report, _View(report, known, []), error
    except FormatError as error:  # the file changed since it was judged
        state = state_of(error.reason)
        found = dataclasses.replace(report, state=state, reason=error.reason, frame=error.frame, offset=error.offset)
        return found, None, None


# -- as JSON ---------------------------------------------------------------------------------------------------------


def _fields(view: _View, *, show_values: bool) -> dict[str, Any]:
    report = report_fields(view.report)
    state = {key: report[key] for key in ("ok", "state", "reason", "exit_status", "message")}
    records = [_record(number, ordinal, call, show_values=show_values) for number, ordinal, call in _placed(view.calls)]
    summary = dataclasses.asdict(view.summary)
    summary["from"] = summary.pop("origin")  # as the header has it
    return {**summary, **state, "records": records}


def _record(number: int, ordinal: int, call: RecordedCall, *, show_values: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "call": number,
        "tool": call.tool,
        "boundary": call.boundary,
        "path": list(call.path),
        "ordinal": ordinal,
        "outcome": call.outcome,
        "phase": call.phase,
        "chunks": None if call.chunks is None else len(call.chunks),
        "omitted": list(call.omitted),
        "effect": call.effect,
        "started_at": call.started_at,
        "ended_at": call.ended_at,
    }
    if show_values:
        fields["values"] = {
            name: [json.loads(part) for part in value] if isinstance(value, tuple) else json.loads(value)
            for name, value in _values(call)
        }
    return fields


def _values(call: RecordedCall) -> Iterator[tuple[str, bytes | tuple[bytes, ...]]]:
    """The bulk members that a call has, as canonical JSON."""
    members = ("args", call.args), ("chunks", call.chunks), ("value", call.value), ("error", call.error)
    for name, value in (*members, ("contexts", call.contexts), ("meta", call.meta)):
        if value is not None:
            yield name, value


# -- as text ---------------------------------------------------------------------------------------------------------


def _text(view: _View, *, show_values: bool) -> Iterator[str]:
    yield f"{shown(view.report.path)}: {view.report.message}"
    facts = _facts(view.summary)
    width = max(map(len, facts))
    yield from (f"  {name.ljust(width)}  {fact}" for name, fact in facts.items())
    if view.summary.locked is not None:
        return
    yield from ("", "tools")
    effects = any(tool.effect for tool in view.summary.tools)
    titles = ("tool", "boundary", "calls", "outcomes", "left out", *(("effect",) if effects else ()))
    yield from _indented(table(titles, (row[: len(titles)] for row in _tool_rows(view.summary))))
    yield from ("", "calls")
    yield from _indented(_call_lines(view.calls, show_values=show_values))
    yield from ("", _advice(view.summary))


def _facts(summary: Inspection) -> dict[str, str]:
    origin = summary.origin
    made = f"{printable(origin['how'])} of {origin['cassette']}, to head {origin['head']}" if origin else None
    locked = summary.locked is not None
    return {
        "format": printable(summary.format),
        "cassette": printable(summary.cassette),
        **({"from": made} if made else {}),
        "created": printable(summary.created),
        "producer": printable(summary.producer),
        "include": _SEALED if locked else ", ".join(map(printable, summary.include)),
        "order": summary.order,
        "sync": summary.sync,
        "rules": _SEALED if locked else ", ".join(map(printable, summary.rules)) or "none: nothing was redacted",
        "frames": str(summary.frames),
        "calls": f"{summary.calls} ({_outcomes(summary.outcomes)})" if summary.calls else "0",
        "rejected": str(summary.rejected),
        "head": summary.head,
        "signed": "yes" if summary.signed else "no",
        **({"encrypted": "yes"} if summary.encrypted else {}),
    }


def _outcomes(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)


def _tool_rows(summary: Inspection) -> Iterator[tuple[str, ...]]:
    for tool in summary.tools:
        omitted = ", ".join(map(printable, tool.omitted)) or "-"
        effect = printable(tool.effect or "-")
        yield printable(tool.tool), tool.boundary, str(tool.calls), _outcomes(tool.outcomes), omitted, effect


def _call_lines(calls: Sequence[RecordedCall], *, show_values: bool) -> Iterator[str]:
    titles = (
        "call",
        "tool",
        "path",
        "ordinal",
        "outcome",
        "ms",
        *(("effect",) if any(c.effect for c in calls) else ()),
    )
    lines = table(titles, (_call_row(number, ordinal, call)[: len(titles)] for number, ordinal, call in _placed(calls)))
    yield lines[0]
    for line, call in zip(lines[1:], calls, strict=True):
        yield line
        if show_values:
            yield from _value_lines(call)


def _call_row(number: int, ordinal: int, call: RecordedCall) -> tuple[str, ...]:
    path = "/" + "/".join(printable(segment) for segment in call.path)
    outcome = call.outcome if call.phase is None else f"{call.outcome} {call.phase}"
    if call.chunks is not None:
        outcome += f" after {counted(len(call.chunks), 'chunk')}"
    took = f"{(call.ended_at - call.started_at) / 1000:.3f}"
    return str(number), printable(call.tool), path, str(ordinal), outcome, took, printable(call.effect or "-")


def _value_lines(call: RecordedCall) -> Iterator[str]:
    for name, value in _values(call):
        for part in value if isinstance(value, tuple) else (value,):
            yield f"      {name} {printable(with_stand_ins(part), _VALUE_CHARS_MAX)}"


def _placed(calls: Sequence[RecordedCall]) -> Iterator[tuple[int, int, RecordedCall]]:
    """Number, ordinal (place among the calls of its path) and call."""
    met: dict[tuple[str, ...], int] = {}
    for number, call in enumerate(calls):
        ordinal = met.get(call.path, 0)
        met[call.path] = ordinal + 1
        yield number, ordinal, call


def _indented(lines: Sequence[str] | Iterator[str]) -> Iterator[str]:
    return ("  " + line for line in lines)


def _advice(summary: Inspection) -> str:
    if not summary.calls:
        return "replay answers no call: none was recorded"
    whole = "the one call" if summary.calls == 1 else f"all {summary.calls} calls, in this order"
    return f"replay consumes {whole}; a call that is left over, out of place or made with other arguments fails the run"
