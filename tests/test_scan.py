"""``scan``: a secret is found wherever it stands, in whatever is left of a cassette; and what is none is left alone."""

from __future__ import annotations

import importlib
import json
import re

import pytest

import toolcassette as tc
from toolcassette.format import encode_value, write_cassette
from toolcassette.scan import FORMS, canary

KEY = "sk-proj-Zx81kQm0pLw93vTtB2" + "x7Yd"  # of no provider: it only looks like one
SPELLED = KEY.encode()
MODULE = importlib.import_module("toolcassette.scan")  # the attribute of this name is the function
CALLS = [
    tc.RecordedCall("fetch", encode_value({"city": "Wuhan"}), value=b'"sun"'),
    tc.RecordedCall("fetch", encode_value({"city": "Paris"}), value=encode_value({"note": f"use {KEY} for it"})),
]


def cassette(calls=CALLS, **header):
    return write_cassette(calls, cassette="ab" * 16, created="2026-01-02T03:04:05.000000Z", producer="t", **header)


@pytest.fixture
def scan(tmp_path, monkeypatch):
    """``scan(data, **options)``: what is found in a file of these bytes; nothing is in the environment."""
    monkeypatch.setattr(MODULE, "from_environment", list)

    def run(data, **options):
        file = tmp_path / "x.jsonl"
        file.write_bytes(data)
        found = tc.scan(file, **options)
        assert all(type(place) is tc.SecretPlace for place in found)
        assert KEY not in repr(found)
        return [tuple(place) for place in found]

    return run


def test_a_clean_cassette(scan):
    assert scan(cassette(CALLS[:1])) == []
    assert scan(b"") == []


def test_a_whole_cassette(scan):
    assert scan(cassette()) == [(4, "$.value.note", "openai-key")]


def test_a_partial_a_torn_and_a_damaged_one(scan):
    data = cassette()
    lines = data.splitlines(keepends=True)
    assert scan(b"".join(lines[:5])) == [(4, "$.value.note", "openai-key")]
    torn = b"".join(lines[:4]) + lines[4][: lines[4].index(b" for it")]
    assert scan(torn) == [(4, "$", "openai-key")]
    assert scan(data.replace(b'"Wuhan"', b'"Hanoi"')) == [(4, "$.value.note", "openai-key")]
    assert scan(data.replace(b'"value":{"note', b'"value": {"note')) == [(4, "$", "openai-key")]
    assert scan(data.replace(b"\n", b"\r\n")) == [(4, "$", "openai-key")]
    assert scan(b"\xef\xbb\xbf" + b"".join(lines[4:])) == [(0, "$", "openai-key")]
    assert scan(data + b"\0" * 512) == [(4, "$.value.note", "openai-key")]


@pytest.mark.parametrize("cut", [1, 5, 14, 15, 16, 40, 100])
def test_wherever_a_file_is_cut(scan, cut):
    """Of a name rule, too: the value that stands after its name is one, ended or not."""
    data = cassette([tc.RecordedCall("t", encode_value({"password": "hunter2hunter2"}), value=b"1")])
    end = data.index(b"hunter2hunter2") + cut
    found = scan(data[:end])
    assert [(frame, rule) for frame, _, rule in found] == [(1, "password")]


def test_a_damaged_line_hides_nothing(scan):
    """What is found in a frame is found in the same line with a byte too many."""
    for value in (
        {"password": b"hunter2"},
        {"password": "hunter2"},
        {"headers": [["X-Api-Key", "abc"]]},
        {"name": "password", "value": "hunter2"},
        {"body": json.dumps({"password": "hunter2"})},
        {KEY: 1},
        {"note": "\u200b" + KEY},
    ):
        data = cassette([tc.RecordedCall("t", b"{}", value=encode_value(value))])
        (whole,) = scan(data)
        damaged = data.replace(b'"outcome":"ok"', b'"outcome": "ok"')
        assert scan(damaged) == [(2, "$", whole[2])], value


def test_any_file_of_lines(scan):
    assert scan(f"# settings\nPORT=80\nOPENAI={KEY}\nDB_PASSWORD=hunter2\n".encode()) == [
        (2, "$", "openai-key"),
        (3, "$", "password"),
    ]
    pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8Qu\n"
    assert scan(f"a\n{pem}-----END RSA PRIVATE KEY-----\nb\n".encode()) == [(1, "$", "private-key")]
    assert scan(f"a\n{pem}".encode()) == []  # no key without its end
    assert scan(b"\xff\xfe" + SPELLED + b"\n") == [(0, "$", "openai-key")]
    assert scan(b'{"text":"\\u0073k-proj-' + SPELLED[8:] + b'"}\n') == [(0, "$", "openai-key")]


def test_a_stream_is_joined(scan):
    chunks = tuple(encode_value({"delta": part}) for part in ("it is ", KEY[:9], KEY[9:], " so"))
    data = cassette([tc.RecordedCall("talk", b"{}", chunks=chunks)])
    assert scan(data) == [(5, "$.value.delta", "openai-key")]
    lines = data.splitlines(keepends=True)
    assert scan(b"".join(lines[:5])) == [(4, "$.value.delta", "openai-key")]  # no end yet
    calm = (encode_value("nothing"), encode_value(" here"))
    assert scan(cassette([tc.RecordedCall("talk", b"{}", chunks=calm)])) == []


def test_the_names_in_a_frame(scan):
    assert scan(cassette([CALLS[0]._replace(tool=f"get_{KEY[:2]}")])) == []
    assert scan(cassette([CALLS[0]._replace(tool=KEY)], include=["*"])) == [(1, "$.tool", "openai-key")]
    assert scan(cassette([CALLS[0]._replace(path=("a", f"user:{KEY}"))])) == [(1, "$.path[1]", "openai-key")]
    assert scan(cassette([CALLS[0]._replace(omitted=(KEY,))])) == [(1, "$.omitted[0]", "openai-key")]
    assert scan(cassette(CALLS[:1], include=["fetch", KEY])) == [(0, "$.include[1]", "openai-key")]


def test_what_is_learned_late_is_found_before_it(scan):
    password = "Tr0ub4dor&3-horse"
    calls = [
        tc.RecordedCall("echo", encode_value({"text": f"I am {password}"}), value=b"1"),
        tc.RecordedCall("login", encode_value({"password": password}), value=b"1"),
    ]
    assert scan(cassette(calls)) == [(1, "$.args.text", "password"), (3, "$.args.password", "password")]


def test_rules_of_ones_own_and_declared_values(scan):
    data = cassette([tc.RecordedCall("t", encode_value({"id": "ACME-12345678", "pin": "9381"}), value=b'"plumtree"')])
    assert scan(data) == []
    assert scan(data, redact=["pin"]) == [(1, "$.args.pin", "pin")]
    assert scan(data, redact=[tc.Redact(re.compile("ACME-[0-9]{8}"), id="acme")]) == [(1, "$.args.id", "acme")]
    assert scan(data, secrets=["plumtree"]) == [(2, "$.value", "declared")]
    for wrong in ({"redact": "pin"}, {"secrets": "plumtree"}, {"secrets": ["abc"]}, {"redact": ["!"]}):
        with pytest.raises(ValueError):
            scan(data, **wrong)

    def broken(text):
        raise OSError(text)

    with pytest.raises(tc.RedactionError) as caught:
        scan(data, redact=[tc.Redact(broken, id="mine")])
    assert "9381" not in str(caught.value)


def test_a_variable_with_the_name_of_a_secret(tmp_path, monkeypatch):
    file = tmp_path / "x"
    file.write_bytes(cassette([tc.RecordedCall("t", b"{}", value=b'"Zx81kQm0pLw93v"')]))
    assert tc.scan(file) == ()
    monkeypatch.setenv("SHOP_API_KEY", "Zx81kQm0pLw93v")
    assert tc.scan(file) == ((2, "$.value", "env"),)


def test_no_stand_in_is_a_secret(tmp_path):
    @tc.Registry().wrap
    def login(password: str, note: str) -> str:
        return f"{note} {password}"

    file = tmp_path / "a.cassette.jsonl"
    with tc.record(file, ["login"]):
        login("hunter2hunter2", f"with {KEY}")
    assert KEY.encode() not in file.read_bytes()
    assert tc.scan(file) == ()
    with tc.record(tmp_path / "b.cassette.jsonl", ["login"], redact=False):
        login("hunter2hunter2", f"with {KEY}")
    assert [place.json_path for place in tc.scan(tmp_path / "b.cassette.jsonl")] == [
        "$.args.note",
        "$.args.password",
        "$.value",
        "$.value",
    ]


def test_a_rule_whose_id_reads_like_a_header(tmp_path):
    """``⟦redacted:authorization:1⟧`` holds what looks like a header of its own."""

    @tc.Registry().wrap
    def fetch(headers: dict[str, str]) -> str:
        return f"asked with {headers}"

    file = tmp_path / "a.cassette.jsonl"
    with tc.record(file, ["fetch"]):
        fetch({"Authorization": f"Bearer {KEY}x", "Cookie": "session=Zx81kQm0pLw93v; a=b", "X-Api-Key": "abc"})
    assert KEY.encode() not in file.read_bytes()
    assert tc.scan(file) == ()
    with tc.replay(file):
        fetch({"Authorization": f"Bearer {KEY}y", "Cookie": "session=another0pLw93v; a=b", "X-Api-Key": "abd"})


def test_what_is_no_secret(scan):
    for text in ("0" * 64, "3f2b8c1e-9a4d-4e7b-8f60-1c2d3e4f5a6b", "a" * 400, "max_tokens=512", "2026-01-02T03:04:05Z"):
        assert scan(cassette([tc.RecordedCall("t", b"{}", value=encode_value({"text": text}))])) == []
        assert scan(f"{text}\n".encode()) == []


def test_what_cannot_be_read(tmp_path):
    for path, reason in ((tmp_path / "gone", "absent"), (tmp_path, "not_a_file")):
        with pytest.raises(tc.FormatError) as caught:
            tc.scan(path)
        assert caught.value.reason == reason


def test_a_store(scan):
    store = tc.MemoryStore()
    spool = store.create("m", cassette_id="ab" * 16)
    spool.append(cassette())
    spool.publish()
    assert tc.scan("m", store=store) == ((4, "$.value.note", "openai-key"),)


def test_a_line_longer_than_any_frame(scan, monkeypatch):
    monkeypatch.setattr(MODULE, "LINE_BYTES_CEILING", 1 << 20)
    for at in ((1 << 20) - 10, 1 << 20, 3 << 20):
        assert scan(b"." * at + b" " + SPELLED + b" " + b"." * (1 << 20)) == [(0, "$", "openai-key")]


# -- the canary -------------------------------------------------------------------------------------------------------


def test_a_canary_that_is_found_in_every_form():
    assert canary(KEY) == ()
    assert canary("ACME-12345678", redact=[re.compile("ACME-[0-9]{8}")]) == ()
    assert canary("plum tree; 100%", secrets=["plum tree; 100%"]) == ()


def test_a_canary_that_is_overlooked():
    assert canary("plumtree") == tuple(FORMS)
    assert canary("9381", redact=["pin"]) == tuple(FORMS)  # found under its name alone
    whole = re.compile(r"\AACME-[0-9]{8}\Z")
    missed = canary("ACME-12345678", redact=[whole])
    assert "inside a text" in missed
    assert "an argument" not in missed


@pytest.mark.parametrize("text", ["", "x"])
def test_a_canary_has_two_halves(text):
    with pytest.raises(ValueError, match="two characters"):
        canary(text)
