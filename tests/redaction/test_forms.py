"""A planted secret in many forms is nowhere on disk, whoever decodes it; and where it stands, it is found."""

from __future__ import annotations

import base64
import json
import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

import toolcassette as tc
from tests.cases.programs import dead, live, record, replay
from tests.redaction.attacker import holds
from toolcassette.engine.planted import planted
from toolcassette.redaction import NEWEST, Rules

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPED = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
DECLARED = 'pässw0rd/+=&"\\ \u2028?'  # every character of it is written in another way somewhere
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSj\n-----END PRIVATE KEY-----\n"

HASHES = {
    "sha1": "31d4d96e407aad42fbd2a0b1e4dc1c43d57f45a2",
    "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "uuid": str(uuid.UUID(int=2**127 + 12345)),
    "id": "task-1234567890123456789012345678901234567890",
    "call": "call_9xKd0aQ3mZ8vB2nC4tY6uI1o",
    "image": base64.b64encode(bytes(range(256))).decode(),
}


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def urlsafe(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


def escaped(text: str) -> str:
    """JSON of another writer: every character as its escape."""
    return "".join(f"\\u{unit:04x}" for unit in _units(text))


def _units(text: str) -> list[int]:
    data = text.encode("utf-16-be")
    return [int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2)]


FORMS: dict[str, Callable[[str], Any]] = {
    "bare": lambda s: s,
    "inside a text": lambda s: f"the key is {s}, keep it",
    "twice in a text": lambda s: f"{s} and {s}",
    "in a list": lambda s: [1, s, None],
    "under a name": lambda s: {"where": {"anything": s}},
    "as a dict key": lambda s: {s: 1},
    "inside a dict key": lambda s: {f"key {s} ends": {"n": 1}},
    "as a key of another map": lambda s: {(1, s): 2, 3: s},
    "in a set": lambda s: {s, "b", "c"},
    "in a tuple": lambda s: (s, 1),
    "in a url": lambda s: f"https://x.example/p?page=2&q={quote(s, safe='')}&z=1",
    "in a path of a url": lambda s: f"https://x.example/{quote(s, safe='')}/x",
    "percent-encoded": lambda s: quote(s, safe=""),
    "percent-encoded in small letters": lambda s: "".join(f"%{byte:02x}" for byte in s.encode()),
    "percent-encoded twice": lambda s: "https://x.example/?next=" + quote(f"https://y.example/?q={quote(s)}", safe=""),
    "percent-encoded after a stray sign": lambda s: f"5%a!50%&q=%3D{quote(s, safe='')}",
    "every byte percent-encoded": lambda s: "".join(f"%{byte:02X}" for byte in s.encode()),
    "base64": b64,
    "base64 for urls": urlsafe,
    "base64 without padding": lambda s: b64(s).rstrip("="),
    "base64 in a text": lambda s: f"Authorization is: Basic {b64('user:' + s)}, it said",
    "base64 in a url": lambda s: f"https://x.example/a/{urlsafe('user:' + s)}/b",
    "base64 percent-encoded": lambda s: f"https://x.example/?t={quote(b64('x:' + s), safe='')}",
    "base64 of base64": lambda s: b64(b64("ab:" + s)),
    "base64 in json in a text": lambda s: json.dumps({"data": b64(json.dumps({"k": s}))}),
    "json in a text": lambda s: json.dumps({"a": [1, {"b": s}]}),
    "json of small characters": lambda s: '{"a": "' + escaped(s) + '"}',
    "json in json": lambda s: json.dumps({"body": json.dumps({"deep": json.dumps([s])})}),
    "json in a text before and after": lambda s: f'said {{"a": {json.dumps(s)}}} and went',
    "lines of json": lambda s: "\n".join([json.dumps({"n": 1}), json.dumps({"k": s}), ""]),
    "server-sent events": lambda s: f"event: x\ndata: {json.dumps({'k': s})}\n\n",
    "a key of json": lambda s: json.dumps({s: 1}),
    "bytes": lambda s: s.encode(),
    "inside bytes": lambda s: b"\x00\xff\xfe" + s.encode() + b"\xff",
    "json as bytes": lambda s: json.dumps({"k": s}).encode(),
    "a bytearray": lambda s: bytearray(b"x:" + s.encode()),
    "bytes of base64": lambda s: b64("user:" + s).encode(),
    "a header line": lambda s: f"GET / HTTP/1.1\r\nX-Other: {s}\r\nHost: x\r\n",
    "credentials of a url": lambda s: f"https://me:{quote(s, safe='')}@x.example/",
    "a repr": lambda s: f"Client(key={s!r})",
    "markdown": lambda s: f"`{s}` **{s}** [x](http://{quote(s, safe='')})",
    "lone surrogates beside it": lambda s: f"\ud800 {s}",
}
SECRETS = {"shaped": SHAPED, "declared": DECLARED, "a key file": PEM}


def on_disk(file) -> bytes:
    return file.read_bytes()


def options(secret: str) -> dict[str, Any]:
    return {"secrets": [secret]} if secret == DECLARED else {}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "forms.cassette.jsonl"


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_not_on_disk_and_is_found_where_it_is(file, tmp_path, form, secret):
    value = FORMS[form](secret)

    def echo(x: Any, same: dict[str, str]) -> Any:
        return {"x": x, "same": same}

    both = {"sync": "none"} | options(secret)
    assert record(file, lambda: live(echo)(value, HASHES), **both) == {"x": value, "same": HASHES}
    data = on_disk(file)
    assert not holds(data, secret.encode())
    for kept in HASHES.values():
        assert data.count(kept.encode()) == 2
    assert tc.verify(file, deep=True).ok
    replay(file, lambda: dead(echo)(value, HASHES), **options(secret))

    open_file = tmp_path / "open.cassette.jsonl"
    record(open_file, lambda: live(echo)(value, HASHES), redact=False)
    assert holds(on_disk(open_file), secret.encode())  # the attacker can read this form
    found = planted(on_disk(open_file).splitlines(keepends=True), Rules(NEWEST), options(secret).get("secrets", ()))
    assert {frame for frame, *_ in found} == {1, 2}
    assert all(path.startswith(("$.args.x", "$.value.x")) for _, path, _ in found)


class Denied(Exception):
    def __init__(self, message: str, *more: object) -> None:
        super().__init__(message, *more)
        self.detail = {"sent": message}


def raises(error: Exception) -> Callable[[], Any]:
    def tool() -> Any:
        raise error

    return tool


def noted(secret: str) -> Exception:
    error = ValueError("no")
    error.add_note(f"it was {secret}")
    return error


def caused(secret: str) -> Exception:
    error = ValueError("no")
    error.__cause__ = KeyError(secret)
    return error


def gives(*items: object) -> Callable[[], Any]:
    def tool() -> Any:
        yield from items

    return tool


def beside(contexts: list[Any], meta: dict[str, Any] | None = None) -> Callable[[], Any]:
    def tool() -> Any:
        return tc.ToolReturn("ok", contexts, meta)

    return tool


def cut(secret: str, size: int) -> list[str]:
    text = f"so it is {secret} and goes on, for a while, as texts do."
    return [text[at : at + size] for at in range(0, len(text), size)]


WAYS: dict[str, Callable[[str], Callable[[], Any]]] = {
    "the message of an exception": lambda s: raises(ValueError(f"bad key {s}")),
    "an argument of an exception": lambda s: raises(KeyError(s)),
    "an attribute of an exception": lambda s: raises(Denied(f"key {s}", 3)),
    "a note": lambda s: raises(noted(s)),
    "a cause": lambda s: raises(caused(s)),
    "a group": lambda s: raises(ExceptionGroup("many", [ValueError(s), TypeError("t")])),
    "a url in an exception": lambda s: raises(OSError(2, "no such thing", f"https://me:{quote(s, safe='')}@x.example")),
    "contexts": lambda s: beside([{"seen": s}]),
    "meta": lambda s: beside([], {"seen": b64("a:" + s)}),
    "one item of a stream": lambda s: gives("a", {"k": s}, "b"),
    "items of bytes": lambda s: gives(b"a", s.encode(), b"b"),
    "pieces of three": lambda s: gives(*cut(s, 3)),
    "pieces of eleven": lambda s: gives(*cut(s, 11)),
    "pieces in dicts": lambda s: gives(*({"delta": {"text": piece}, "n": 1} for piece in cut(s, 5))),
    "pieces of bytes": lambda s: gives(*(piece.encode() for piece in cut(s, 4))),
    "a stream that fails": lambda s: fails_after(cut(s, 9)[:3], s),
}


def fails_after(items: list[str], secret: str) -> Callable[[], Any]:
    def tool() -> Any:
        yield from items
        raise ValueError(secret)

    return tool


def run(tool: Callable[[], Any]) -> object:
    try:
        result = tool()
        return list(result) if hasattr(result, "__iter__") and not isinstance(result, (str, dict)) else result
    except Exception as error:
        return type(error).__name__


@pytest.mark.filterwarnings("ignore:.*neither builtin nor declared")
@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("way", WAYS)
def test_a_secret_in_an_outcome(file, tmp_path, way, secret):
    tool = WAYS[way](secret)
    record(file, lambda: run(live(tool)), **options(secret))
    assert not holds(on_disk(file), secret.encode())
    assert tc.verify(file, deep=True).ok
    replay(file, lambda: run(dead(tool)), **options(secret))

    open_file = tmp_path / "open.cassette.jsonl"
    record(open_file, lambda: run(live(tool)), redact=False)
    assert holds(on_disk(open_file), secret.encode())
    assert planted(on_disk(open_file).splitlines(keepends=True), Rules(NEWEST), options(secret).get("secrets", ()))
    if way != "a stream that fails":
        with pytest.raises(tc.SecretFound):
            replay(open_file, lambda: None, **options(secret))


def test_there_are_twenty_forms_and_more():
    assert len(FORMS) + len(WAYS) > 40
