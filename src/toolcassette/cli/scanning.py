"""The verb ``scan``: where secrets stand in files, and which forms of one some rules would overlook.

Rule: a finding is a file, a frame, a JSON path and a rule, never the value; all inputs are looked at, also after one
that could not be judged; of their exit statuses 2 beats 1 beats 0.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

import click

from toolcassette import __version__
from toolcassette.cli.inputs import expand, listed
from toolcassette.cli.looking import Annotation, annotate
from toolcassette.cli.outlet import complain, counted, say, say_json, shown
from toolcassette.errors import EncryptionError, FormatError, RedactionError, printable
from toolcassette.scan import canary, scan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolcassette.cli.inputs import Input
    from toolcassette.scan import SecretPlace

__all__ = ["scan_verb", "secrets_of"]

_SARIF_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_JSON_PATH_CHARS_MAX: Final = 300
_IN_PLACE: Final = (
    "a rule that is a name or a JSON path replaces what stands there; a pattern, or a declared secret, is looked for "
    "everywhere"
)


class _Scanned(NamedTuple):
    """One input: what was found in it, or why nothing can be said of it."""

    path: str
    found: tuple[SecretPlace, ...] = ()
    refused: str | None = None

    @property
    def exit_status(self) -> int:
        return 2 if self.refused is not None else 1 if self.found else 0


# -- how it is said ---------------------------------------------------------------------------------------------------


def _words(place: SecretPlace) -> str:
    """A finding without its file, safe to print."""
    return f"frame {place.frame}, {printable(place.json_path, _JSON_PATH_CHARS_MAX)}: {printable(place.rule)}"


def _as_text(scanned: Sequence[_Scanned]) -> None:
    for item in scanned:
        for place in item.found:
            say(f"{shown(item.path)}: {_words(place)}")


def _as_json(scanned: Sequence[_Scanned]) -> None:
    say_json(
        [
            {
                "path": item.path,
                "ok": item.exit_status == 0,
                "exit_status": item.exit_status,
                "message": item.refused,
                "findings": [place._asdict() for place in item.found],
            }
            for item in scanned
        ]
    )


def _as_github(scanned: Sequence[_Scanned]) -> None:
    annotate(
        [
            Annotation(item.path, place.frame, "secret found", _words(place), f"{shown(item.path)}: {_words(place)}")
            for item in scanned
            for place in item.found
        ]
    )


def _as_sarif(scanned: Sequence[_Scanned]) -> None:
    """One run of SARIF 2.1.0; what could not be judged is a notification, and then the run was no success."""
    ids = sorted({place.rule for item in scanned for place in item.found})
    refused = [item for item in scanned if item.refused is not None]
    driver: dict[str, Any] = {
        "name": "toolcassette",
        "version": __version__,
        "rules": [{"id": rule, "shortDescription": {"text": f"a secret, by the rule {rule}"}} for rule in ids],
    }
    invocation: dict[str, Any] = {"executionSuccessful": not refused}
    if refused:
        invocation["toolExecutionNotifications"] = [
            {"level": "error", "message": {"text": f"{shown(item.path)}: {item.refused}"}} for item in refused
        ]
    results = [_result(item.path, place, ids.index(place.rule)) for item in scanned for place in item.found]
    run = {"tool": {"driver": driver}, "invocations": [invocation], "results": results}
    say_json({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def _result(path: str, place: SecretPlace, rule: int) -> dict[str, Any]:
    uri = quote(os.fsencode(path.replace(os.sep, "/")), safe="/")
    return {
        "ruleId": place.rule,
        "ruleIndex": rule,
        "level": "error",
        "message": {"text": f"a secret stands at {_words(place)}"},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": place.frame + 1}},
                "logicalLocations": [{"fullyQualifiedName": printable(place.json_path, _JSON_PATH_CHARS_MAX)}],
            }
        ],
    }


_FORMS: Final[dict[str, Callable[[Sequence[_Scanned]], None]]] = {
    "text": _as_text,
    "json": _as_json,
    "sarif": _as_sarif,
    "github": _as_github,
}


# -- the verb ---------------------------------------------------------------------------------------------------------


@click.command("scan", short_help="look for secrets in files")
@click.argument("paths", metavar="PATH...", nargs=-1)
@click.option("--redact", "names", metavar="RULE", multiple=True, help="a rule: a name or a JSON path; repeat it")
@click.option("--pattern", "patterns", metavar="REGEX", multiple=True, help="a rule: a regular expression; repeat it")
@click.option(
    "--secret-env", "variables", metavar="NAME", multiple=True, help="look for the value of this variable; repeat it"
)
@click.option("--canary", "bird", metavar="TEXT", help="name the forms in which these rules would overlook TEXT")
@click.option("--files-from", metavar="FILE", help="scan the files listed in FILE too, one a line; - for stdin")
@click.option("--format", "form", type=click.Choice(list(_FORMS)), default="text", help="how to say it")
def scan_verb(
    paths: tuple[str, ...],
    names: tuple[str, ...],
    patterns: tuple[str, ...],
    variables: tuple[str, ...],
    bird: str | None,
    files_from: str | None,
    form: str,
) -> int:
    """Look for secrets in files: exit status 1 if one is found; file, frame, JSON path and rule, never the value

    A PATH is a file of any kind of lines, a folder (every *.cassette.jsonl in it, partials too) or - for stdin. Whole
    or damaged, redacted or not: it is read by the rules of today, through percent-encoding, base64 and JSON in texts.
    With --canary nothing is scanned but the made-up TEXT, in every form that redaction looks through.
    """
    rules = [*names, *map(_pattern, patterns)]
    secrets = secrets_of(variables)
    try:
        if bird is not None:
            return _sing(bird, rules, secrets, others=bool(paths) or files_from is not None)
        chosen = [*paths, *(listed(files_from) if files_from is not None else ())]
        if not chosen:
            raise click.UsageError("missing argument 'PATH...'")
        scanned = [_scanned(item, rules, secrets) for item in expand(chosen)]
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    _FORMS[form](scanned)
    for item in scanned:
        if item.refused is not None:
            complain(f"{shown(item.path)}: {item.refused}")
    found = sum(len(item.found) for item in scanned)
    if found and form in ("text", "github"):
        complain(f"{counted(found, 'secret')} found; close these credentials, and record again")
    return max(item.exit_status for item in scanned)


def _scanned(item: Input, rules: Sequence[object], secrets: Sequence[str]) -> _Scanned:
    if not item.path or "\0" in item.path:
        return _Scanned(item.path, refused=str(FormatError("absent")))
    try:
        return _Scanned(item.path, scan(item.path, redact=rules, secrets=secrets, store=item.store))
    except (FormatError, EncryptionError, RedactionError) as error:
        return _Scanned(item.path, refused=str(error))


def _sing(text: str, rules: Sequence[object], secrets: Sequence[str], *, others: bool) -> int:
    """The canary. TEXT is not shown, nor is where it was found: only the forms in which it was not."""
    if others:
        raise click.UsageError("--canary takes no PATH")
    missed = canary(text, redact=rules, secrets=secrets)
    for name in missed:
        say(f"overlooked: {printable(name)}")
    if missed:
        complain(f"the canary would be overlooked in {counted(len(missed), 'form')}: {_IN_PLACE}")
        return 1
    say("the canary is found in every form")
    return 0


def _pattern(text: str) -> re.Pattern[str]:
    try:
        found = re.compile(text)
    except re.error as error:
        raise click.UsageError(f"--pattern is no regular expression: {error.msg}") from None
    if found.match("") is not None:
        raise click.UsageError("--pattern matches the empty text, and so everything")
    return found


def secrets_of(variables: Iterable[str]) -> tuple[str, ...]:
    """The values of environment variables. Raises ``click.UsageError`` for one that is not set."""
    values = []
    for name in variables:
        if not os.environ.get(name):
            raise click.UsageError(f"--secret-env: there is no variable {shown(name)}")
        values.append(os.environ[name])
    return tuple(values)
