"""Encrypted cassettes: who can read what, and every attack on what is sealed.

Rule: each forgery is the best that can be made without the data key, hashes made anew: whole for ``verify``, which
needs no key, and refused by name when it is opened.
"""

from __future__ import annotations

import json
import os
import warnings

import pytest

import toolcassette as tc
from tests.proof.helpers import judged, note_over, rehashed, sidecar
from toolcassette.crypto import DataKey, Identity, Recipient, SealingKey, opening_with
from toolcassette.crypto.data_key import opener
from toolcassette.format import RecordedOutcome, Writer, parse_cassette

NONE_ELSE = b',"error":0,"cancelled":0,"left_early":0,"rejected":0,"prev":"'
WARNING = "no trusted key signed it"


class People:
    """Identities by name, in files: ``file(name)`` is a path, ``key(name)`` the recipient's text."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.known = {}

    def identity(self, name):
        if name not in self.known:
            self.known[name] = Identity.generate()
            (self.folder / name).write_bytes(self.known[name].to_bytes())
        return self.known[name]

    def file(self, name):
        self.identity(name)
        return str(self.folder / name)

    def key(self, name):
        return str(self.identity(name).recipient)


@pytest.fixture
def people(tmp_path):
    return People(tmp_path / "people")


def tools():
    registry = tc.Registry()

    def weather(city: str) -> str:
        return f"sunny in {city}"

    def forecast(days: int):
        for day in range(days):
            yield f"day {day}"

    def broken() -> None:
        raise ValueError("no such place")

    return [registry.wrap(tool) for tool in (weather, forecast, broken)]


def go(weather, forecast, broken):
    with tc.scope("trip"):
        said = [weather("Wuhan"), list(forecast(2))]
    with pytest.raises(ValueError, match="no such place"):
        broken()
    return said


def recorded(file, *recipients, **options):
    with tc.record(file, include=["*"], recipients=recipients, **options):
        return go(*tools())


def replayed(file, *identities, **options):
    with pytest.warns(UserWarning, match=WARNING), tc.replay(file, identities=identities, **options):
        return go(*tools())


def lines_of(data):
    return data.splitlines(keepends=True)


def refused(file, people, name="ann"):
    """Whole for who has no key; what opening it comes to."""
    assert tc.verify(file, deep=True).ok
    with pytest.raises(tc.EncryptionError) as caught:
        tc.read_cassette(file, identities=[people.file(name)])
    return caught.value.reason, caught.value.frame


# -- round ---------------------------------------------------------------------------------------------------------


def test_what_was_recorded_is_replayed(file, people):
    said = recorded(file, people.key("ann"))
    assert replayed(file, people.file("ann")) == said


def test_nothing_of_a_call_is_in_the_clear_but_kind_numbers_and_outcome(file, people):
    recorded(file, people.key("ann"))
    data = file.read_bytes()
    for word in (
        b"Wuhan",
        b"sunny",
        b"weather",
        b"forecast",
        b"trip",
        b"day 0",
        b"no such place",
        b"ValueError",
        b"default/",
    ):
        assert word not in data
    clear = {"seq", "kind", "call", "chunk", "outcome", "chunks", "enc", "prev", "hash"}
    for line in lines_of(data)[1:-1]:
        assert json.loads(line).keys() <= clear
    header = json.loads(lines_of(data)[0])
    assert (header["requires"], header["include"], header["rules"]) == (["encryption"], [], [])


def test_every_recipient_opens_it_and_nobody_else(file, people):
    names = ["ann", "ben", "cyd"]
    recorded(file, *map(people.key, names))
    said = [list(tc.read_cassette(file, identities=[people.file(name)])) for name in names]
    assert said[0] == said[1] == said[2]
    assert said[0]
    assert refused(file, people, "eve") == ("identity_wrong", None)


def test_recipients_come_from_files_too(file, people, tmp_path):
    (tmp_path / "team").write_text(f"# the team\n{people.key('ann')}\n\n{people.key('ben')}\n", "utf-8")
    recorded(file, str(tmp_path / "team"))
    assert len(tc.read_cassette(file, identities=[people.file("ben")])) == 3


def test_the_identity_comes_from_the_environment(file, people, monkeypatch):
    recorded(file, people.key("ann"))
    monkeypatch.setenv("TOOLCASSETTE_IDENTITY", os.pathsep.join([people.file("eve"), people.file("ann")]))
    assert len(tc.read_cassette(file)) == 3
    with pytest.raises(tc.EncryptionError, match="identity_wrong"):  # what code says goes before it
        tc.read_cassette(file, identities=[people.file("eve")])


@pytest.mark.parametrize(("count", "stanzas"), [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (16, 16)])
def test_how_many_recipients_there_are_is_not_told(count, stanzas, people, file):
    recorded(file, *(str(Identity.generate().recipient) for _ in range(count)))
    envelope = json.loads(lines_of(file.read_bytes())[0])["enc"]
    assert len(envelope["to"]) == len(set(envelope["to"])) == stanzas
    assert {len(stanza) for stanza in envelope["to"]} == {108}


def test_recipients_stand_in_no_order_of_theirs(people):
    names = [f"p{number}" for number in range(8)]
    places = set()
    for _ in range(12):
        data = _tiny([people.identity(name).recipient for name in names])
        places.add(_place_of(data, people.identity("p0")))
    assert len(places) > 1


def _tiny(recipients):
    writer = Writer(sealing=lambda cassette: SealingKey.fresh(recipients, cassette))
    head = writer.header(
        cassette="ab" * 16, created="2026-01-02T03:04:05.000000Z", producer="t", include=["*"], order="any", sync="none"
    )
    return b"".join(
        [
            head,
            writer.start(tool="t", args=b"{}", at=1),
            writer.result(0, RecordedOutcome("ok", 2, value=b'"secret"')),
            writer.complete(),
        ]
    )


def _place_of(data, identity):
    envelope = json.loads(lines_of(data)[0])["enc"]
    for place, stanza in enumerate(envelope["to"]):
        one = json.loads(lines_of(data)[0])
        one["enc"]["to"] = [stanza]
        body = json.dumps(one, separators=(",", ":")).encode()
        alone = rehashed([body[: body.rindex(b',"prev":"')] + b',"prev":"', *lines_of(data)[1:]])
        try:
            parse_cassette(alone, opens=lambda header: opener(header, [identity]))
        except tc.EncryptionError as error:
            if error.reason == "forged":  # the key was found; the header is another one
                return place
    raise AssertionError("no stanza is for this identity")


def test_each_recording_has_a_key_of_its_own(people):
    one, other = (_tiny([people.identity("ann").recipient]) for _ in range(2))
    commits = {json.loads(lines_of(data)[0])["enc"]["commit"] for data in (one, other)}
    assert len(commits) == 2
    assert not set(lines_of(one)[1:3]) & set(lines_of(other)[1:3])


# -- without the key -----------------------------------------------------------------------------------------------


def test_verify_needs_no_key(file, people):
    recorded(file, people.key("ann"))
    report = tc.verify(file, deep=True)
    assert report.ok
    assert report.encrypted
    assert report.message == "intact, encrypted, unsigned"
    assert report.calls == 3


def test_use_without_a_key_says_so(file, people, keys):
    recorded(file, people.key("ann"), sign=keys.private("ann"))
    for use in (
        lambda: tc.read_cassette(file),
        lambda: tc.replay(file).open(),
        lambda: tc.diff(file, file),
        lambda: tc.scan(file),
        lambda: tc.prove(file, 0),
        lambda: tc.parse_cassette(file.read_bytes()),
    ):
        with pytest.raises(tc.EncryptionError) as caught:
            use()
        assert caught.value.reason == "identity_missing"
        assert caught.value.exit_status == 2


def test_inspect_without_a_key_tells_what_is_clear(file, people):
    recorded(file, people.key("ann"))
    found = tc.inspect(file)
    assert (found.encrypted, found.locked) == (True, "identity_missing")
    assert (found.calls, found.outcomes["ok"], found.outcomes["error"]) == (3, 2, 1)
    assert (found.include, found.tools, found.rules) == ((), (), ())
    assert tc.list_cassettes(file.parent)[0].kind == "encrypted"


def test_with_the_key_all_is_as_in_the_clear(file, people, monkeypatch, tmp_path):
    recorded(file, people.key("ann"))
    recorded(tmp_path / "plain.cassette.jsonl")
    monkeypatch.setenv("TOOLCASSETTE_IDENTITY", people.file("ann"))
    found = tc.inspect(file)
    assert (found.encrypted, found.locked, found.include) == (True, None, ("*",))
    assert [tool.tool for tool in found.tools] == ["broken", "forecast", "weather"]
    assert tc.diff(file, tmp_path / "plain.cassette.jsonl").same
    assert tc.scan(file) == ()
    assert tc.list_cassettes(file.parent)[0].kind == "tools"


def test_scan_looks_behind_the_encryption(file, people, monkeypatch):
    recorded(file, people.key("ann"))
    monkeypatch.setenv("TOOLCASSETTE_IDENTITY", people.file("ann"))
    assert [place.json_path for place in tc.scan(file, secrets=["Wuhan"])] == ["$.args.city", "$.value"]


def test_a_damaged_one_is_damaged_and_not_locked(file, people):
    recorded(file, people.key("ann"))
    data = bytearray(file.read_bytes())
    data[-400] ^= 1
    file.write_bytes(data)
    with pytest.raises(tc.FormatError):
        tc.read_cassette(file)


def test_a_call_of_it_is_not_proven_alone(file, people, keys, monkeypatch):
    recorded(file, people.key("ann"), sign=keys.private("ann"))
    monkeypatch.setenv("TOOLCASSETTE_IDENTITY", people.file("ann"))
    with pytest.raises(tc.EncryptionError, match="proof"):
        tc.prove(file, 0)


def test_it_is_not_salvaged(file, people, tmp_path):
    recorded(file, people.key("ann"))
    cut = tmp_path / "cut.cassette.jsonl"
    cut.write_bytes(b"".join(lines_of(file.read_bytes())[:-2]))
    with pytest.raises(tc.EncryptionError, match="salvage"):
        tc.recover(cut, salvage=tmp_path / "new.cassette.jsonl")
    assert not (tmp_path / "new.cassette.jsonl").exists()


# -- signature -----------------------------------------------------------------------------------------------------


def test_a_replay_warns_where_no_trusted_key_signed_it(file, people, keys):
    recorded(file, people.key("ann"), sign=keys.private("ci"))
    replayed(file, people.file("ann"))  # signed, and nobody is trusted
    with (
        warnings.catch_warnings(action="error"),
        tc.replay(file, identities=[people.file("ann")], trusted_keys=[keys.vkey("ci")]),
    ):
        go(*tools())


def test_the_signature_covers_the_ciphertext(file, people, keys):
    recorded(file, people.key("ann"), sign=keys.private("ci"))
    assert judged(file, keys.vkey("ci")) == "signed"
    lines = lines_of(file.read_bytes())
    file.write_bytes(rehashed([*lines[:1], *lines[1:]]))
    assert judged(file, keys.vkey("ci")) == "signed"  # the very same
    changed = file.read_bytes().replace(b'"order":"strict"', b'"order":"causal"')
    file.write_bytes(rehashed(lines_of(changed)))
    assert judged(file, keys.vkey("ci")) == "signature_stale"


def test_whoever_knows_the_recipient_can_make_one_and_only_a_signature_tells(file, people, keys):
    recorded(file, people.key("ann"))
    assert len(tc.read_cassette(file, identities=[people.file("ann")])) == 3
    with pytest.raises(tc.SignatureError, match="signature_missing"):
        tc.replay(file, identities=[people.file("ann")], trusted_keys=[keys.vkey("ci")], require_signature=True).open()


# -- attacks without the data key ----------------------------------------------------------------------------------


def enc(line):
    return line.split(b'"enc":"')[1].split(b'"')[0]


def with_enc(line, text):
    return line.replace(enc(line), text)


@pytest.fixture
def made(file, people):
    recorded(file, people.key("ann"))
    lines = lines_of(file.read_bytes())

    def put(changed):
        file.write_bytes(rehashed(changed))

    return lines, put


def test_every_frame_is_bound_to_its_place(made, file, people):
    """Any two ciphertexts of one cassette exchanged: the first of the two is named."""
    lines, put = made
    sealed = range(1, len(lines) - 1)
    for one in sealed:
        for other in sealed:
            if one < other:
                changed = list(lines)
                changed[one], changed[other] = (
                    with_enc(lines[one], enc(lines[other])),
                    with_enc(lines[other], enc(lines[one])),
                )
                put(changed)
                reason, frame = refused(file, people)
                assert reason == "forged"
                assert frame in (one, other)


def test_every_bit_of_a_ciphertext_counts(made, file, people):
    import base64

    lines, put = made
    for number in range(1, len(lines) - 1):
        for at in (0, -1, 7):
            data = bytearray(base64.b64decode(enc(lines[number])))
            data[at] ^= 1
            put([*lines[:number], with_enc(lines[number], base64.b64encode(data)), *lines[number + 1 :]])
            assert refused(file, people) == ("forged", number)


def test_the_clear_prefix_is_bound(made, file, people):
    """Outcome, chunks and numbers that fit the grammar, and are not those that were sealed."""
    lines, put = made
    end = next(n for n, line in enumerate(lines) if b'"outcome":"error"' in line)
    tail = lines[-1].replace(b'"ok":2,"error":1', b'"ok":3,"error":0')
    put([*lines[:end], lines[end].replace(b'"error"', b'"ok"'), *lines[end + 1 : -1], tail])
    assert refused(file, people) == ("forged", end)


def test_frames_of_another_cassette_do_not_fit(made, file, people, tmp_path):
    lines, put = made
    other = tmp_path / "other.cassette.jsonl"
    recorded(other, people.key("ann"))
    foreign = lines_of(other.read_bytes())
    for number in range(1, len(lines) - 1):
        put([*lines[:number], foreign[number], *lines[number + 1 :]])
        assert refused(file, people) == ("forged", number)
    put([foreign[0], *lines[1:]])
    assert refused(file, people) == ("forged", 1)


@pytest.mark.parametrize(
    ("old", "new", "frame"),
    [
        (b'"order":"strict"', b'"order":"any"', 0),
        (b'"sync":"frame"', b'"sync":"none"', 0),
        (b'"created":"2', b'"created":"1', 0),
        (b'"cassette":"', b'"cassette":"', None),
    ],
)
def test_the_header_is_bound(made, file, people, old, new, frame):
    lines, put = made
    header = lines[0].replace(old, new)
    if frame is None:  # the id is part of what the keys are made of
        start = header.index(old) + len(old)
        header = header[:start] + b"0" * 32 + header[start + 32 :]
    put([header, *lines[1:]])
    assert refused(file, people) == (("identity_wrong", None) if frame is None else ("forged", frame))


def test_a_recipient_cannot_be_added_or_dropped(file, people):
    recorded(file, people.key("ann"), people.key("ben"))
    lines = lines_of(file.read_bytes())
    header = json.loads(lines[0])
    mine = list(header["enc"]["to"])
    for to in ([mine[0]], [mine[1]], [mine[1], mine[0]]):
        changed = json.dumps({**header, "enc": {**header["enc"], "to": to}}, separators=(",", ":")).encode() + b"\n"
        file.write_bytes(rehashed([changed, *lines[1:]]))
        results = {refused(file, people, name)[0] for name in ("ann", "ben")}
        assert "forged" in results
        assert results <= {"forged", "identity_wrong"}


def test_frames_cannot_be_dropped_but_at_the_end(made, file, people):
    """A call that is taken out shifts the numbers of those behind it. The tail is for a signature to protect."""
    lines, put = made

    def renumbered(line, seq, call):
        fields = json.loads(line)
        fields |= {"seq": seq, "call": fields["call"] - call}
        return json.dumps(fields, separators=(",", ":")).encode() + b"\n"

    rest = [renumbered(line, seq, 1) for seq, line in enumerate(lines[3:-1], 1)]
    counts = json.loads(lines[-1]) | {"seq": len(rest) + 1, "calls": 2, "frames": len(rest) + 2, "ok": 1}
    put([lines[0], *rest, json.dumps(counts, separators=(",", ":")).encode() + b"\n"])
    assert refused(file, people) == ("forged", 1)


def test_a_frame_in_the_clear_does_not_pass(made, file, people):
    lines, put = made
    clear = b'{"seq":1,"kind":"call/start","call":0,"boundary":"tool","path":[],"tool":"t","at":1,"args":{},"prev":"'
    put([lines[0], clear, *lines[2:]])
    assert (tc.verify(file).reason, tc.verify(file).frame) == ("members", 1)


# -- attacks with the data key: a maker who cheats -----------------------------------------------------------------


def cheating(people, secrets, **seal):
    """A cassette whose maker sends each of two recipients another key."""
    from toolcassette.crypto.data_key import _info, _suite

    to = [people.identity(name).recipient for name in ("ann", "ben")]

    def sealing(cassette):
        stanzas = [
            _suite().encrypt(secret, recipient.key(), info=_info(cassette))
            for secret, recipient in zip(secrets, to, strict=True)
        ]
        return SealingKey(secrets[0], cassette, stanzas)

    writer = Writer(sealing=sealing)
    head = writer.header(
        cassette="ab" * 16, created="2026-01-02T03:04:05.000000Z", producer="t", include=["*"], order="any", sync="none"
    )
    return b"".join(
        [
            head,
            writer.start(tool="t", args=b"{}", at=1),
            writer.result(0, RecordedOutcome("ok", 2, **(seal or {"value": b'"one text"'}))),
            writer.complete(),
        ]
    )


def test_one_ciphertext_cannot_have_two_texts(people, file):
    """GCM alone would open under two keys; the commitment stands before anything is opened."""
    file.write_bytes(cheating(people, [b"a" * 32, b"b" * 32]))
    [call] = tc.read_cassette(file, identities=[people.file("ann")])
    assert call.value == b'"one text"'
    assert refused(file, people, "ben") == ("commitment", 0)


def test_the_commitment_is_looked_at_before_any_text_is_opened(people, file, monkeypatch):
    file.write_bytes(cheating(people, [b"a" * 32, b"b" * 32]))
    monkeypatch.setattr(DataKey, "open", lambda *_: pytest.fail("opened"))
    with pytest.raises(tc.EncryptionError, match="commitment"):
        tc.read_cassette(file, identities=[people.file("ben")])


def test_what_the_key_sealed_is_read_as_strictly_as_what_is_clear(people):
    """The holder of a key writes what no writer would: each is refused, none is half read."""
    recipient = people.identity("ann").recipient

    def sealed(data, prefix=b'{"seq":1,"kind":"call/start","call":0'):
        key = SealingKey.fresh([recipient], "ab" * 16)
        writer = Writer(sealing=lambda _: key)
        head = writer.header(
            cassette="ab" * 16, created="2026-01-02T03:04:05.000000Z", producer="t", include=["*"], order="any",
            sync="none",
        )  # fmt: skip
        start = b'%b,"enc":"%b","prev":"' % (prefix, key.seal(1, prefix, data))
        end_prefix = b'{"seq":2,"kind":"call/result","call":0,"outcome":"ok"'
        end = b'%b,"enc":"%b","prev":"' % (end_prefix, key.seal(2, end_prefix, b'{"at":2,"value":null}'))
        return rehashed([head, start, end, b'{"seq":3,"kind":"complete","calls":1,"frames":4,"ok":1' + NONE_ELSE])

    good = b'{"boundary":"tool","path":[],"tool":"t","at":1,"args":{}}'
    for data in (
        b"", b"{}", b"[]", b"null", good[:-1], good + b" ", b" " + good,
        good.replace(b'"tool":"t"', b'"tool":"t","call":7'),
        good.replace(b'"at":1', b'"at": 1'),
        good.replace(b'"tool":"t"', b'"tool":""'),
        good.replace(b'"boundary":"tool"', b'"boundary":"other"'),
        good.replace(b'"args":{}', b'"value":1'),
        good[:-1] + b',"prev":"' + b"0" * 64 + b'"}',
        good.replace(b"}}", b'}}\n{"seq":2}'),
    ):  # fmt: skip
        made = sealed(data)
        with pytest.raises(tc.FormatError) as caught:
            list(parse_cassette(made, opens=lambda header: opener(header, [people.identity("ann")])))
        assert caught.value.reason in ("bulk", "head", "members", "too_deep")
    [call] = parse_cassette(sealed(good), opens=lambda header: opener(header, [people.identity("ann")]))
    assert call.tool == "t"


def test_a_nested_call_is_found_by_who_can_look(people):
    key = SealingKey.fresh([people.identity("ann").recipient], "ab" * 16)
    writer = Writer(sealing=lambda _: key)
    lines = [
        writer.header(
            cassette="ab" * 16, created="2026-01-02T03:04:05.000000Z", producer="t", include=["*"], order="any",
            sync="none",
        )
    ]  # fmt: skip
    for seq, path in ((1, b"[]"), (3, b'["t:0123456789abcdef#0"]')):
        prefix = b'{"seq":%d,"kind":"call/start","call":%d' % (seq, seq // 2)
        text = key.seal(seq, prefix, b'{"boundary":"tool","path":%b,"tool":"t","at":1,"args":{}}' % path)
        lines.append(b'%b,"enc":"%b","prev":"' % (prefix, text))
        prefix = b'{"seq":%d,"kind":"call/result","call":%d,"outcome":"ok"' % (seq + 1, seq // 2)
        lines.append(b'%b,"enc":"%b","prev":"' % (prefix, key.seal(seq + 1, prefix, b'{"at":2,"value":null}')))
    lines.append(b'{"seq":5,"kind":"complete","calls":2,"frames":6,"ok":2' + NONE_ELSE)
    with pytest.raises(tc.FormatError) as caught:
        parse_cassette(rehashed(lines), opens=lambda header: opener(header, [people.identity("ann")]))
    assert (caught.value.reason, caught.value.frame) == ("nested", 3)


# -- nonces --------------------------------------------------------------------------------------------------------


def test_a_key_seals_no_number_twice(people):
    key = SealingKey.fresh([people.identity("ann").recipient], "ab" * 16)
    key.seal(0, b"", b"one")
    key.seal(3, b"", b"one")
    for seq in (0, 2, 3):
        with pytest.raises(RuntimeError, match="once"):
            key.seal(seq, b"", b"other")


def test_a_key_seals_in_its_own_process_only(people, monkeypatch):
    key = SealingKey.fresh([people.identity("ann").recipient], "ab" * 16)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="process"):
        key.seal(0, b"", b"text")


def test_a_writer_that_refuses_a_frame_seals_nothing(people):
    writer = Writer(line_bytes_max=4096, sealing=lambda c: SealingKey.fresh([people.identity("ann").recipient], c))
    writer.header(
        cassette="ab" * 16, created="2026-01-02T03:04:05.000000Z", producer="t", include=["*"], order="any", sync="none"
    )
    for size in (4096, 3000):  # the second is short enough in the clear
        with pytest.raises(tc.FormatError, match="line_too_long"):
            writer.start(tool="t", args=b'{"a":"%b"}' % (b"x" * size), at=1)
    line = writer.start(tool="t", args=b'{"a":"%b"}' % (b"x" * 2500), at=1)
    assert len(line) <= 4096
    assert writer.seq == 2


@pytest.mark.parametrize("spare", range(4))
def test_the_length_of_a_sealed_line_is_known_before(people, spare):
    def first(limit):
        writer = Writer(line_bytes_max=limit, sealing=lambda c: SealingKey.fresh([people.identity("ann").recipient], c))
        writer.header(
            cassette="ab" * 16, created="2026-01-02T03:04:05.000000Z", producer="t", include=["*"], order="any",
            sync="none",
        )  # fmt: skip
        return writer.start(tool="t", args=b'{"a":"%b"}' % (b"x" * (1500 + spare)), at=1)

    size = len(first(8192))
    assert len(first(size)) == size
    with pytest.raises(tc.FormatError, match="line_too_long"):
        first(size - 1)


def test_what_is_written_anew_has_a_key_of_its_own(file, people):
    """A secret that is known only late: the whole recording is written again, and no nonce is used twice."""
    registry = tc.Registry()

    def hand(value: str) -> str:
        return value

    tool = registry.wrap(hand)
    token = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"[:36]
    seen = []

    class Watching(SealingKey):
        def seal(self, seq, prefix, data):
            text = super().seal(seq, prefix, data)
            seen.append((self._key.commitment, seq))
            return text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolcassette.crypto.data_key.SealingKey", Watching)
        with tc.record(file, include=["*"], recipients=[people.key("ann")]):
            tool(token[4:])  # nothing about it is known yet
            tool(token)
            tool(f"password={token[4:]}")
    assert len(seen) == len(set(seen))
    calls = list(tc.read_cassette(file, identities=[people.file("ann")]))
    assert token.encode() not in b"".join(call.args + (call.value or b"") for call in calls)
    if len({key for key, _ in seen}) == 1:
        pytest.fail("this recording was not written anew: the test shows nothing")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_seals_nothing(file, people):
    weather, forecast, broken = tools()
    with warnings.catch_warnings(action="ignore"), tc.record(file, include=["*"], recipients=[people.key("ann")]):
        weather("Wuhan")
        child = os.fork()
        if child == 0:
            try:
                weather("Rome")
            except tc.SessionClosed:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        list(forecast(1))
        with pytest.raises(ValueError, match="no such"):
            broken()
    assert len(tc.read_cassette(file, identities=[people.file("ann")])) == 3


# -- again, and for others -----------------------------------------------------------------------------------------


def test_a_re_recording_is_always_a_new_cassette(file, people):
    recorded(file, people.key("ann"))
    before = file.read_bytes()
    with tc.record(file, include=["*"], recipients=[people.key("ben")], replace=True) as session:
        go(*tools())
    assert session.verdict is not None
    assert session.verdict.outcome == "published"
    assert file.read_bytes() != before
    assert len(tc.read_cassette(file, identities=[people.file("ben")])) == 3


def test_rewrap(file, people, tmp_path, keys):
    recorded(file, people.key("ann"), sign=keys.private("ci"))
    before, into = file.read_bytes(), tmp_path / "new.cassette.jsonl"
    made = tc.rewrap(file, into, [people.key("ben")], identities=[people.file("ann")])
    assert file.read_bytes() == before
    assert tc.verify(into, deep=True).cassette == made != tc.verify(file).cassette
    new = tc.read_cassette(into, identities=[people.file("ben")])
    assert [call._replace() for call in new] == list(tc.read_cassette(file, identities=[people.file("ann")]))
    assert tc.inspect(into).origin == {
        "cassette": tc.verify(file).cassette, "head": tc.verify(file).head, "how": "rewrap"
    }  # fmt: skip
    assert refused(into, people, "ann") == ("identity_wrong", None)
    sidecar(into).write_bytes(sidecar(file).read_bytes())
    assert judged(into, keys.vkey("ci")) == "signature_stale"
    sidecar(into).write_bytes(note_over(into.read_bytes(), keys.signer("ci")))
    assert judged(into, keys.vkey("ci")) == "signed"


def test_rewrap_encrypts_what_was_clear(file, people, tmp_path):
    recorded(file)
    into = tmp_path / "new.cassette.jsonl"
    tc.rewrap(file, into, [people.key("ann")])
    assert b"Wuhan" not in into.read_bytes()
    assert replayed(into, people.file("ann")) == ["sunny in Wuhan", ["day 0", "day 1"]]


def test_rewrap_overwrites_nothing(file, people, tmp_path):
    recorded(file, people.key("ann"))
    into = tmp_path / "new.cassette.jsonl"
    into.write_text("mine", "utf-8")
    with pytest.raises(tc.CassetteExists):
        tc.rewrap(file, into, [people.key("ben")], identities=[people.file("ann")])
    assert into.read_text("utf-8") == "mine"
    assert not into.with_name(into.name + ".partial").exists()
    with pytest.raises(ValueError, match="recipient"):
        tc.rewrap(file, tmp_path / "other.cassette.jsonl", [])
    with pytest.raises(tc.EncryptionError, match="identity_missing"):
        tc.rewrap(file, tmp_path / "other.cassette.jsonl", [people.key("ben")])


# -- keys ----------------------------------------------------------------------------------------------------------


def test_a_recipient_has_one_text():
    recipient = Identity.from_seed(bytes(range(32))).recipient
    text = str(recipient)
    assert text == "x25519+" + recipient.check + "+j0DFrbaPJWJK5bIU6nZ6bslNgp09e14a0bpvPiE4KF8="
    assert Recipient.parse(text) == recipient


@pytest.mark.parametrize(
    "text",
    [
        "x25519+00000000+j0DFrbaPJWJK5bIU6nZ6bslNgp09e14a0bpvPiE4KF8=",
        "x25519+",
        "x25519+zz",
        str(Identity.from_seed(bytes(range(32))).recipient)[:-1],
        str(Identity.from_seed(bytes(range(32))).recipient) + "=",
        str(Identity.from_seed(bytes(range(32))).recipient) + "\n",
    ],
)
def test_a_junk_recipient_is_told(text, tmp_path):
    with pytest.raises(tc.EncryptionError) as caught:
        tc.record(tmp_path / "a.cassette.jsonl", include=["*"], recipients=[text])
    assert caught.value.reason == "recipient_junk"


def test_a_verifier_key_is_no_recipient_and_the_other_way_round(tmp_path, keys, people, file):
    with pytest.raises(tc.EncryptionError, match="recipient_junk"):
        tc.record(file, include=["*"], recipients=[keys.public("ci")])
    recorded(file, people.key("ann"))
    with pytest.raises(tc.EncryptionError, match="identity_unusable"):
        tc.read_cassette(file, identities=[keys.private("ci")])
    with pytest.raises(tc.SignatureError, match="key_unusable"):
        tc.sign(file, people.file("ann"))


def test_files_that_are_not_there(tmp_path, people, file):
    with pytest.raises(tc.EncryptionError, match="recipient_unreadable"):
        tc.record(file, include=["*"], recipients=[str(tmp_path / "nowhere")])
    recorded(file, people.key("ann"))
    with pytest.raises(tc.EncryptionError, match="identity_unreadable"):
        tc.read_cassette(file, identities=[str(tmp_path / "nowhere")])


def test_too_many_recipients(file):
    with pytest.raises(ValueError, match="at most 16"):
        tc.record(file, include=["*"], recipients=[str(Identity.generate().recipient) for _ in range(17)])


def test_the_same_recipient_twice_is_one(file, people):
    recorded(file, people.key("ann"), people.key("ann"))
    assert len(json.loads(lines_of(file.read_bytes())[0])["enc"]["to"]) == 1


def test_no_private_key_is_in_a_repr(people):
    identity = people.identity("ann")
    shown = repr(identity) + repr([identity])
    assert str(identity.recipient) in shown
    assert identity.key.private_bytes_raw().hex() not in shown


def test_identities_of_several_in_one_file(file, people, tmp_path):
    ring = tmp_path / "ring"
    ring.write_bytes(people.identity("eve").to_bytes() + people.identity("ann").to_bytes())
    recorded(file, people.key("ann"))
    assert len(tc.read_cassette(file, identities=[str(ring)])) == 3


def test_keys_are_read_only_where_something_is_encrypted(file, monkeypatch):
    recorded(file)
    monkeypatch.setenv("TOOLCASSETTE_IDENTITY", "nowhere")
    assert len(tc.read_cassette(file)) == 3
    assert callable(opening_with(()))
