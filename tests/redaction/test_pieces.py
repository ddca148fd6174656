"""Secrets that come in pieces: however a text is cut, the joined pieces on disk are its redacted form."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolcassette as tc
from toolcassette.format import encode_value
from toolcassette.redaction import HELD_MAX, NEWEST, ChunkRedactor, Redactor, Rules, text_of
from toolcassette.redaction.views import applied

SHAPED = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
DECLARED = "hünter two & co"
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\n9w0BAQEFAASC/=\n-----END PRIVATE KEY-----"

TEXTS = [
    f"so it is {SHAPED} and goes on",
    f"task-{SHAPED}",
    f"x {DECLARED} y {DECLARED}",
    f"key:\n{PEM}\nend",
    "go to https://me:p!a$s(word)@host.example/x?y=1 and back",
    "Authorization: Bearer abc def\nHost: x",
    "curl -H 'authorization: bearer 0123456789abcdef' x",
    "Server=db;Password=hunter!2$;Encrypt=true",
    "dsn = \"host=db password='hunter two!' dbname=x\"",
    'so {"user": "me", "password": "hun\\"ter 2!", "n": 1} it said',
    "https://x.example/?a=1&access_token=a!b$c&z=2#access_token=xyz",
    f"data: {json.dumps({'api_key': 'a b c!', 'name': 'n'})}\n\ndata: [DONE]\n",
    f"{json.dumps({'n': 1})}\n{json.dumps({'headers': [{'name': 'Authorization', 'value': 'x y z'}]})}\n",
    "see ZGIgaMO8bnRlciB0d28gJiBjbyBi and a%20h%C3%BCnter%20two%20%26%20co%20b",
    "nothing here: max_tokens=100, the bearer of it, key: value, https://x.example:80/a",
    "ends with a key sk-abcdefghijklmnop0123456789",
    "\\u0068\\u00fcnter two & co, and a repr 'h\\xfcnter two & co'",
]


def redactor() -> Redactor:
    return Redactor(Rules(NEWEST), declared=[DECLARED])


def uncut(text: str) -> str:
    return applied(text, redactor().text_edits(text))


def pieces(text: str, cuts: list[int]) -> list[str]:
    ends = sorted({min(cut, len(text)) for cut in cuts} | {len(text)})
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def written(items: list[Any]) -> list[Any]:
    chunks = ChunkRedactor(redactor())
    out = [line for item in items for line in chunks.add(encode_value(item))] + chunks.end()
    assert len(out) == len(items)
    return [json.loads(line) for line in out]


def text(item: Any) -> str:
    if isinstance(item, dict) and item.get("$tc") == "redacted":
        return f"⟦redacted:{item['rule']}:{item['n']}⟧"
    return str(item)


SECRETS = [SHAPED, DECLARED, "MIIEvQ", "p!a$", "word)", "abc def", "0123456789abcdef", "hunter", "ter 2!", "a!b$c"]
SECRETS += ["xyz", "a b c!", "x y z", "ZGIgaM", "bnRlciB0d28gJ", "h%C3", "%20two", "sk-abc", "\\u00fcnter", "\\xfcnter"]


def check(items: list[str]) -> None:
    """Joined, the pieces are the redacted form of the text; they hold less of it if one of them looks like a secret."""
    whole, joined = "".join(items), "".join(map(text, written(items)))
    if any(redactor().text_edits(item) for item in items):
        assert not [secret for secret in SECRETS if secret in joined and secret not in uncut(whole)]
    else:
        assert unnumbered(joined) == unnumbered(uncut(whole))


def unnumbered(joined: str) -> str:
    """Cut, a secret may be met first in a shorter form, so numbers may differ."""
    return re.sub(r":[0-9]+⟧", "⟧", joined)


def test_the_secrets_stand_in_the_texts_and_not_in_their_redacted_form():
    joined, redacted = "".join(TEXTS), "".join(map(uncut, TEXTS[2:]))
    assert all(secret in joined for secret in SECRETS)
    assert not any(secret in redacted for secret in SECRETS)


@pytest.mark.parametrize("whole", TEXTS)
def test_every_cut_in_two(whole):
    for at in range(1, len(whole)):
        check([whole[:at], whole[at:]])


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("whole", TEXTS)
def test_pieces_of_one_size(whole, size):
    check([whole[at : at + size] for at in range(0, len(whole), size)])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_cutting_of_any_text(data):
    # What is no secret by itself, and is one once a later text shows it, is for the look back at the end of a session.
    by_itself = [each for each in TEXTS if not each.startswith("task-")]
    words = st.sampled_from([*by_itself, "\n", " ", "and ", "so. "])
    whole = "start: " + "\n".join(data.draw(st.lists(words, min_size=1, max_size=4)))
    cuts = data.draw(st.lists(st.integers(1, len(whole)), max_size=12))
    check(pieces(whole, cuts))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_cutting_of_bytes(data):
    whole = f"é {data.draw(st.sampled_from(TEXTS))} ü".encode()
    cuts = sorted({*data.draw(st.lists(st.integers(1, len(whole)), max_size=8)), len(whole)})
    items = [whole[start:end] for start, end in zip([0, *cuts], cuts, strict=False)]
    chunks = ChunkRedactor(redactor())
    out = [line for item in items for line in chunks.add(encode_value(item))] + chunks.end()
    parts = [json.loads(line) for line in out]
    joined = b"".join(text(part).encode() if part["$tc"] == "redacted" else tc_bytes(part) for part in parts)
    if not any(redactor().text_edits(text_of(item)) for item in items):
        assert unnumbered(joined.decode()) == unnumbered(uncut(whole.decode()))
    assert not [secret for secret in SECRETS if secret in joined.decode() and secret not in uncut(whole.decode())]


def tc_bytes(part: dict[str, str]) -> bytes:
    return base64.b64decode(part["v"])


def test_pieces_at_several_places_of_an_item():
    items = [{"a": part, "b": [{"t": part}], "c": ("x", part), "n": 1} for part in pieces(TEXTS[0], [11, 20, 30])]
    found = written(items)
    for get in (lambda i: i["a"], lambda i: i["b"][0]["t"], lambda i: i["c"]["v"][1]):
        assert "".join(map(text, map(get, found))) == uncut(TEXTS[0])


def test_no_more_than_a_limit_is_held_back():
    chunks = ChunkRedactor(redactor())
    held = 0
    for number in range(3 * HELD_MAX // 8):
        held += 8 - 8 * len(chunks.add(encode_value(f"{number:08x}")))
        assert held <= HELD_MAX + 8
    assert chunks.overflowed
    assert not ChunkRedactor(redactor()).overflowed


def test_prose_is_held_back_for_no_longer_than_a_word():
    chunks = ChunkRedactor(redactor())
    sent = 0
    prose = "It is a truth [universally] acknowledged, that a {single} man must be in want"
    for number, word in enumerate(prose.split()):
        sent += len(chunks.add(encode_value(f" {word}")))
        assert number - 1 <= sent <= number + 1


def test_a_secret_longer_than_the_limit_is_taken_out_at_the_end(tmp_path):
    """What was let go only because of the limit is looked at once more, whole."""
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" * 2] * 120)
    key += "\n-----END RSA PRIVATE KEY-----"
    assert len(key) > HELD_MAX

    def tool() -> Any:
        yield "here: "
        for at in range(0, len(key), 100):
            yield key[at : at + 100]

    file = tmp_path / "x.cassette.jsonl"
    with tc.record(file, ["*"], sync="none"):
        list(tc.Registry().wrap(tool)())
    assert b"MIIEvQ" not in file.read_bytes()
    assert b"PRIVATE" not in file.read_bytes()
    with tc.replay(file):
        list(tc.Registry().wrap(tool)())
