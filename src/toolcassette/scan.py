"""Secrets in a file, as data: ``scan``; and ``canary``, which tells what some rules would overlook.

Rule: the file is read as somebody would who means to find them: whole or not, a cassette or not, by the rules of today
whatever it was recorded under. A finding says where and by which rule, never what.
"""

from __future__ import annotations

import base64
import functools
import json
import os
from typing import TYPE_CHECKING, Final, NamedTuple

from toolcassette.crypto import opening_with
from toolcassette.engine import Search
from toolcassette.errors import FormatError
from toolcassette.format import (
    LINE_BYTES_CEILING,
    Header,
    RecordedCall,
    decode_head,
    encode_value,
    has_trailer,
    open_line,
    write_cassette,
)
from toolcassette.redaction import DECLARED_MIN, from_environment, rules_of
from toolcassette.stores import FileStore, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from toolcassette.format import Opener
    from toolcassette.redaction import Rules
    from toolcassette.stores import Store

__all__ = ["SecretPlace", "canary", "scan"]

_OVERLAP_BYTES: Final = 8192  # of two pieces of a line that no cassette could have: longer than most keys
_NAME: Final = "canary.cassette.jsonl"
_FIXED: Final = {"cassette": "0" * 32, "created": "2000-01-01T00:00:00.000000Z", "producer": "toolcassette"}


class SecretPlace(NamedTuple):
    """Where a secret stands. ``frame`` counts from 0, and is the number of a line before it.

    ``json_path`` begins at the frame (``$.args.key``), and is ``$`` in a line that is no frame; ``rule`` is the id of
    the rule that found it.
    """

    frame: int
    json_path: str
    rule: str


def scan(
    file: str | os.PathLike[str],
    *,
    redact: Sequence[object] = (),
    secrets: Sequence[str] = (),
    store: Store | None = None,
) -> tuple[SecretPlace, ...]:
    """Where secrets stand in a file: a cassette, a partial, a damaged one, or any file of lines.

    ``redact`` are rules of your own besides the default ones, ``secrets`` values to look for wherever they stand, as
    ``Options`` has them; so are the values of environment variables with the names of secrets. Raises ``FormatError``
    for a file that is absent or cannot be read, ``EncryptionError`` for an encrypted one that no key of the environment
    opens, ``RedactionError`` where a rule fails, ``ValueError`` for a bad one.
    """
    return _places(store or FileStore(), os.fspath(file), _rules(redact, secrets), secrets, from_environment())


def _rules(redact: Sequence[object], secrets: Sequence[str]) -> Rules:
    if isinstance(redact, str) or isinstance(secrets, str):
        message = "redact must be a list of rules, and secrets a list of texts"
        raise ValueError(message)  # noqa: TRY004 - every fault of an option is a ValueError
    if any(len(value) < DECLARED_MIN for value in secrets):
        raise ValueError(f"secrets are texts of at least {DECLARED_MIN} characters: shorter ones stand everywhere")
    return rules_of(redact, declared=bool(secrets))


def _places(
    store: Store, name: str, rules: Rules, secrets: Sequence[str], environment: Iterable[str]
) -> tuple[SecretPlace, ...]:
    search = Search(rules, secrets, environment)
    known = search.known
    found = list(_looked(search, store, name))
    if search.known != known:  # what was learned at the end may stand before it
        found = list(_looked(search, store, name))
    return tuple(SecretPlace(*row) for row in sorted(dict.fromkeys(found), key=lambda row: row[0]))


def _looked(search: Search, store: Store, name: str) -> Iterator[tuple[int, str, str]]:
    opener: Opener | None = None
    with store.open(name) as source:
        for number, line in _lines(source.blocks()):
            opener = _opener(line) if number == 0 else opener
            yield from search.line(number, line if opener is None else _opened(line, opener))
    yield from search.end()


def _opener(first: bytes) -> Opener | None:
    """What opens the lines of an encrypted cassette, whole or not; None for any other file."""
    try:
        header = decode_head(first) if has_trailer(first) else None
    except FormatError:
        return None
    return opening_with()(header) if isinstance(header, Header) and header.requires else None


def _opened(line: bytes, opener: Opener) -> bytes:
    """A line as it would be in the clear; as it is, where it is none that was sealed."""
    try:
        return open_line(line, opener) if has_trailer(line) else line
    except FormatError:
        return line


def _lines(blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Numbered lines with their LF; one that is longer than any frame in pieces that overlap."""
    number, rest = 0, b""
    for block in blocks:
        *lines, tail = (rest + block).split(b"\n") if b"\n" in block else (rest + block,)
        for line in lines:
            yield number, line + b"\n"
            number += 1
        rest = tail
        if len(rest) > LINE_BYTES_CEILING:
            yield number, rest
            rest = rest[-_OVERLAP_BYTES:]
    if rest:
        yield number, rest


# -- the canary ------------------------------------------------------------------------------------------------------


def canary(text: str, *, redact: Sequence[object] = (), secrets: Sequence[str] = ()) -> tuple[str, ...]:
    """The forms in which ``text`` would be overlooked by these rules and the default ones: none, if all is well.

    Each form is written into a cassette of its own, which is scanned. ``text`` is made up: what a secret looks like.
    Raises ``ValueError`` as ``scan``, and for a text of less than two characters.
    """
    if len(text) < 2:
        raise ValueError("a canary needs two characters or more, so that it can be cut in two")
    rules = _rules(redact, secrets)
    names = (rule for rule in redact if isinstance(rule, str) and not rule.startswith("$"))
    named = {f"the value of {name}": functools.partial(_under, name) for name in names}
    missed = []
    for form, make in (FORMS | named).items():
        store = MemoryStore()
        spool = store.create(_NAME, cassette_id="0" * 32)
        spool.append(write_cassette([make(text)], include=["canary"], **_FIXED))
        spool.publish()
        if not _places(store, _NAME, rules, secrets, ()):
            missed.append(form)
    return tuple(missed)


def _value(value: object) -> RecordedCall:
    return RecordedCall(tool="canary", args=b"{}", value=encode_value(value))


def _under(name: str, text: str) -> RecordedCall:
    return _value({name: text})


def _chunks(*items: object) -> RecordedCall:
    return RecordedCall(tool="canary", args=b"{}", chunks=tuple(map(encode_value, items)))


def _percent(text: str, sign: str = "%") -> str:
    return "".join(f"{sign}{byte:02X}" for byte in text.encode("utf-8"))


def _half(text: str) -> int:
    return len(text) // 2


FORMS: Final[dict[str, Callable[[str], RecordedCall]]] = {
    "an argument": lambda t: RecordedCall(tool="canary", args=encode_value({"note": t}), value=b"1"),
    "a result": _value,
    "inside a text": lambda t: _value(f"it says {t} here"),
    "percent-encoded": lambda t: _value(f"/search?q={_percent(t)}"),
    "percent-encoded twice": lambda t: _value(f"/search?q={_percent(t, '%25')}"),
    "base64": lambda t: _value(base64.b64encode(t.encode("utf-8")).decode("ascii")),
    "base64 of a longer text": lambda t: _value(base64.b64encode(f"it says {t} here".encode()).decode("ascii")),
    "base64 for URLs": lambda t: _value(base64.urlsafe_b64encode(f"~~~? {t} ~~~?".encode()).decode().rstrip("=")),
    "JSON in a text": lambda t: _value(json.dumps({"note": [t]})),
    "JSON in JSON in a text": lambda t: _value(json.dumps({"note": json.dumps({"note": t})})),
    "a key of an object": lambda t: _value({t: 1}),
    "bytes": lambda t: _value(t.encode("utf-8")),
    "the message of an error": lambda t: RecordedCall(
        tool="canary", args=b"{}", outcome="error", error=encode_value({"type": "ValueError", "message": f"no {t}"})
    ),
    "a stream of texts, cut in two": lambda t: _chunks(f"it says {t[: _half(t)]}", f"{t[_half(t) :]} here"),
    "a stream of bytes, cut in two": lambda t: _chunks(t[: _half(t)].encode(), t[_half(t) :].encode()),
    "the call path": lambda t: RecordedCall(tool="canary", args=b"{}", value=b"1", path=(f"scope:{t}",)),
}
