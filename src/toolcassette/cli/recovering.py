"""The verb ``recover``: finish what a crash interrupted, or keep what is left of a recording.

Rule: all inputs are judged, also after one that could not be; of their exit statuses 2 beats 1 beats 0.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from toolcassette.cli.inputs import STDIN, expand
from toolcassette.cli.outlet import complain, in_flags, say, say_json, shown
from toolcassette.errors import CassetteError, CassetteExists, FormatError
from toolcassette.recover import Recovery, recover
from toolcassette.stores import PARTIAL_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["recover_verb"]

# what stands in the way -> the same in the words of this verb; without and with --salvage
_IN_THE_WAY: Final = {
    "cassette": "another file has its name, nothing was touched; look at both, then move one of them away",
    "live_partial": "it is being written, nothing was touched; wait for that run to end",
    "stale_partial": "what has the name of its partial is no file, nothing was touched; move it away",
}
_IN_THE_WAY_OF_NEW: Final = {
    "cassette": "the new file exists already, nothing was touched; give another name",
    "live_partial": "this recording is being written, or the new one is; wait for that run to end",
    "stale_partial": "the new file has a partial already, nothing was touched; give another name",
}


class _Refused(NamedTuple):
    """An input that nothing could be done with."""

    path: str
    error: CassetteError
    in_the_way: dict[str, str] = _IN_THE_WAY

    @property
    def exit_status(self) -> int:
        return self.error.exit_status

    @property
    def message(self) -> str:
        error = self.error
        return self.in_the_way[error.what] if isinstance(error, CassetteExists) else str(error)


@click.command("recover", short_help="finish or salvage a recording that a crash interrupted")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--salvage", "into", metavar="NEW_FILE", help="write the ended calls of one PATH to a new cassette")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="how to say it")
def recover_verb(paths: tuple[str, ...], into: str | None, form: str) -> int:
    """Finish what a crash interrupted: publish a whole partial, or remove one whose cassette is published already

    A PATH is a partial, a cassette or a folder. Nothing is overwritten, and a partial that is not whole stays as it is.
    With --salvage, its calls that ended before the first bad frame go to a new cassette, whose header says where they
    come from; the same for a damaged cassette.
    """
    if STDIN in paths:
        raise click.UsageError("recover works on files, not on stdin")
    if into is not None and len(paths) != 1:
        raise click.UsageError("--salvage takes one PATH")
    answers = [_answer(path, into) for path in (paths if into is not None else _distinct(paths))]
    if form == "json":
        say_json([_fields(answer) for answer in answers])
    else:
        _tell(answers)
    return max(answer.exit_status for answer in answers)


def _distinct(paths: Sequence[str]) -> Iterator[str]:
    """The files that the PATHs stand for; a cassette and its partial are one thing to recover."""
    seen: set[str] = set()
    for item in expand(paths):
        name = item.path.removesuffix(PARTIAL_SUFFIX)
        if name not in seen:
            seen.add(name)
            yield item.path


def _answer(path: str, into: str | None) -> Recovery | _Refused:
    try:
        return recover(path, salvage=into)
    except CassetteError as error:
        return _Refused(path, error, _IN_THE_WAY if into is None else _IN_THE_WAY_OF_NEW)
    except ValueError as error:  # an empty name, a NUL in it
        if into is not None:
            raise click.UsageError(str(error)) from None
        return _Refused(path, FormatError("absent"))


def _tell(answers: Sequence[Recovery | _Refused]) -> None:
    for answer in answers:
        line = f"{shown(answer.path)}: {in_flags(answer.message)}"
        if isinstance(answer, _Refused):
            complain(line)
        else:
            say(line)
        for note in answer.notes if isinstance(answer, Recovery) else ():
            complain(f"note: {note}")


def _fields(answer: Recovery | _Refused) -> dict[str, Any]:
    same: dict[str, Any] = {"message": in_flags(answer.message), "exit_status": answer.exit_status}
    if isinstance(answer, _Refused):
        return {"path": answer.path, "ok": False, "found": "refused", "done": "nothing", **same}
    return {**dataclasses.asdict(answer), "ok": answer.ok, **same}
