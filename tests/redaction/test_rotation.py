"""Record with one secret, replay with another: a hit; one other leaf changed: a miss; never a guess."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolcassette as tc
from tests.cases.programs import dead, live, record, replay

A, B = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "ghp_" + "Z9y8X7w6V5u4T3s2R1q0P9o8N7m6L5k4J3h2"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "rotated.cassette.jsonl"


def echo(x: Any) -> Any:
    return {"got": x}


def missed(file: Any, program: Any, **options: Any) -> tc.CassetteMismatch:
    with pytest.raises(tc.CassetteMismatch) as caught:
        replay(file, program, **options)
    return caught.value


# -- any value, any rules --------------------------------------------------------------------------------------------

SLOT = "<slot>"  # where a secret stands; its number follows
_plain = st.sampled_from(["a", "b", "", "x y", "1"]) | st.integers(0, 3) | st.booleans() | st.none()
_slots = st.integers(0, 2).map(lambda n: f"{SLOT}{n}")
_values = st.recursive(
    _plain | _slots,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["user", "note", "q", "password", "pin", "where"]), inner, max_size=3)
        | st.tuples(inner, inner)
    ),
    max_leaves=8,
)
_forms = st.sampled_from(["bare", "text", "url", "base64", "json"])
_rules = st.lists(st.sampled_from(["pin", "$.x.note", "where"]), unique=True, max_size=3)


def formed(secret: str, form: str) -> str:
    return {
        "bare": secret,
        "text": f"it is {secret}.",
        "url": f"https://x.example/?q={quote(secret)}&r=1",
        "base64": base64.b64encode(f"user:{secret}".encode()).decode(),
        "json": json.dumps({"k": [secret]}),
    }[form]


def filled(node: Any, secrets: list[str], form: str) -> Any:
    if isinstance(node, str) and node.startswith(SLOT):
        return formed(secrets[int(node[-1])], form)
    if isinstance(node, (list, tuple)):
        return type(node)(filled(item, secrets, form) for item in node)
    if isinstance(node, dict):
        return {key: filled(item, secrets, form) for key, item in node.items()}
    return node


def leaves(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places that no rule replaces: what is not under a secret name, and no slot."""
    if isinstance(node, (list, tuple)):
        return [place for index, item in enumerate(node) for place in leaves(item, (*path, index))]
    if isinstance(node, dict):
        return [place for key, item in node.items() for place in leaves(item, (*path, key))]
    ruled = {"password", "pin", "where", "note"} & set(path)
    return [] if ruled or (isinstance(node, str) and node.startswith(SLOT)) else [path]


def changed(node: Any, path: tuple[Any, ...]) -> Any:
    if not path:
        return "changed" if node != "changed" else 7
    if isinstance(node, tuple):
        return tuple(changed(item, path[1:]) if index == path[0] else item for index, item in enumerate(node))
    again = copy.copy(node)
    again[path[0]] = changed(node[path[0]], path[1:])
    return again


def secrets_of(seed: int, count: int = 3) -> list[str]:
    return [f"ghp_{number:02d}{seed:04d}" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8" for number in range(count)]


def hit(values: list[Any], secrets: list[str], form: str, store: Any, mode: str, **options: Any) -> None:
    tool = (live if mode == "record" else dead)(echo)
    session = (
        tc.record("x", ["*"], store=store, **options) if mode == "record" else tc.replay("x", store=store, **options)
    )
    with session:
        for value in values:
            tool(filled(value, secrets, form))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_values, min_size=1, max_size=3), _forms, _rules, st.sampled_from(["causal", "strict"]))
def test_rotated_secrets_are_a_hit_and_a_changed_leaf_is_a_miss(values, form, rules, order):
    store = tc.MemoryStore()
    hit(values, secrets_of(1), form, store, "record", redact=rules, order=order)
    with store.open("x") as source:
        data = b"".join(source.blocks())
    assert not any(secret.encode() in data for secret in secrets_of(1))
    hit(values, secrets_of(1), form, store, "replay", redact=rules)
    hit(values, secrets_of(2), form, store, "replay", redact=rules)
    places = leaves(values[-1])
    if places:
        with pytest.raises((tc.CassetteMismatch, tc.UnconsumedCalls)):
            hit([*values[:-1], changed(values[-1], places[-1])], secrets_of(2), form, store, "replay", redact=rules)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=2, max_size=5), st.lists(st.integers(0, 2), min_size=2, max_size=5), _forms)
def test_secrets_must_be_the_same_and_different_as_they_were(recorded, live_ones, form):
    """What were two secrets is one now, or the reverse: a miss. Up to renaming: a hit."""
    live_ones = (live_ones * 5)[: len(recorded)]
    store = tc.MemoryStore()
    hit([[f"{SLOT}{n}" for n in recorded]], secrets_of(1), form, store, "record")
    pairs = set(zip(recorded, live_ones, strict=True))
    renamed = len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    again = [[f"{SLOT}{n}" for n in live_ones]]
    if renamed:
        hit(again, secrets_of(2), form, store, "replay")
    else:
        with pytest.raises(tc.CassetteMismatch):
            hit(again, secrets_of(2), form, store, "replay")


def test_over_several_calls_too(file):
    record(file, lambda: [live(echo)(s) for s in (A, B, A)])
    replay(file, lambda: [dead(echo)(s) for s in (B, A, B)])
    assert missed(file, lambda: [dead(echo)(s) for s in (A, B, B)]).ordinal == 2
    assert missed(file, lambda: [dead(echo)(s) for s in (A, A, A)]).ordinal == 1


# -- without the rules -----------------------------------------------------------------------------------------------


def test_without_the_rules_the_mismatch_names_them(file):
    def fetch(url: str, badge: str) -> str:
        return url

    record(file, lambda: live(fetch)("u", "sk-AAAA"), redact=["badge"], secrets=["u-secret"])
    said = str(missed(file, lambda: dead(fetch)("u", "sk-BBBB")))
    assert "badge" in said
    assert "declared" in said
    assert "sk-BBBB" not in said
    replay(file, lambda: dead(fetch)("u", "sk-BBBB"), redact=["badge"], secrets=["another"])


def test_a_rule_of_another_content_is_told(file):
    record(file, lambda: live(echo)({"badge": "b1"}), redact=[tc.Redact("badge", id="mine")])
    said = str(missed(file, lambda: dead(echo)({"badge": "b2"}), redact=[tc.Redact("pin", id="mine")]))
    assert "mine" in said
    assert "changed" in said


def test_replaying_without_redaction_is_a_miss_that_names_the_rules(file):
    record(file, lambda: live(echo)({"password": "p1"}))
    replay(file, lambda: dead(echo)({"password": "p2"}), redact=False)  # the cassette says what it was recorded under


# -- what was handed out and is passed on ----------------------------------------------------------------------------

PASSED_ON = {
    "bare": lambda s: s,
    "in a dict": lambda s: {"token": s, "n": 1},
    "in a text": lambda s: f"it is {s}!",
    "in a url": lambda s: f"https://x.example/?token={s}&n=1",
    "percent-encoded": lambda s: f"https://x.example/?q={quote(s, safe='')}&n=1",
    "credentials of a url": lambda s: f"https://me:{quote(s, safe='')}@x.example/",
    "a header": lambda s: {"Authorization": f"Bearer {s}"},
    "basic": lambda s: {"Authorization": "Basic " + base64.b64encode(f"user:{s}".encode()).decode()},
    "basic in a text": lambda s: "curl -H 'X: " + base64.b64encode(f"user:{s}".encode()).decode() + "'",
    "json": lambda s: json.dumps({"auth": {"token": s}, "k": [s]}),
    "json of another writer": lambda s: json.dumps({"k": s}, ensure_ascii=False, indent=1),
    "json in json": lambda s: json.dumps({"body": json.dumps({"password": s})}),
    "bytes": lambda s: s.encode(),
    "json as bytes": lambda s: json.dumps({"k": s}).encode(),
    "under another secret name": lambda s: {"password": s},
    "a key": lambda s: {s: 1},
    "a repr": lambda s: f"Client(token={s!r})",
    "a tuple": lambda s: (s, [s]),
}


@pytest.mark.parametrize("order", ["strict", "any"])
@pytest.mark.parametrize("form", PASSED_ON)
def test_a_stand_in_that_is_passed_on_is_a_hit(file, form, order):
    def login(user: str) -> dict[str, str]:
        return {"user": user, "access_token": secret}

    def program(make: Any) -> Any:
        token = make(login)("me")["access_token"]
        return make(echo)(PASSED_ON[form](token)), make(echo)([token, "again"])

    secret = A
    record(file, lambda: program(live), order=order)
    assert A.encode() not in file.read_bytes()
    replay(file, lambda: program(dead))


def test_another_stand_in_in_its_place_is_a_miss(file):
    def login(user: str) -> dict[str, str]:
        return {"token": A, "secret": B}

    def program(make: Any, name: str) -> Any:
        return make(echo)({"q": make(login)("me")[name]})

    record(file, lambda: program(live, "token"))
    replay(file, lambda: program(dead, "token"))
    assert missed(file, lambda: program(dead, "secret")).reason == "arguments_differ"


# -- several records -------------------------------------------------------------------------------------------------


def pay(card_number: str, n: int = 0) -> str:
    return f"paid {card_number[-1]}"


@pytest.mark.parametrize("order", ["any", "causal"])
def test_where_only_secrets_tell_records_apart_nothing_is_guessed(file, order):
    async def both(make: Any, cards: list[str]) -> Any:
        import asyncio

        async def tool(card_number: str) -> str:
            await asyncio.sleep(0.001)
            return f"paid {len(card_number)}"

        tools = make(tool)
        return await asyncio.gather(*(tools(card) for card in cards))

    import asyncio

    record(file, lambda: asyncio.run(both(live, ["4111", "55555"])), order=order)
    error = missed(file, lambda: asyncio.run(both(dead, ["1", "2"])))
    assert error.reason == "redaction_ambiguous"
    assert "4111" not in str(error)


def test_outcomes_that_hold_different_stand_ins_differ(file):
    record(file, lambda: [live(echo)({"password": p, "n": 1})["got"]["n"] for p in ("a", "b")], order="any")
    # the outcomes hold the stand-ins of different secrets, so they differ
    assert (
        missed(file, lambda: [dead(echo)({"password": p, "n": 1}) for p in ("x", "y")]).reason == "redaction_ambiguous"
    )


def test_equal_outcomes_without_stand_ins_are_a_hit(file):
    def check(password: str) -> bool:
        return True

    record(file, lambda: [live(check)(p) for p in ("a", "b", "a")], order="any")
    replay(file, lambda: [dead(check)(p) for p in ("x", "y", "x")])
    replay(file, lambda: [dead(check)(p) for p in ("x", "x", "y")])
    with pytest.raises(tc.CassetteError):
        replay(file, lambda: [dead(check)(p) for p in ("x", "x", "x")])


def test_the_same_secret_twice_is_the_next_record(file):
    answers = iter(["one", "two"])

    def poll(token: str) -> str:
        return next(answers)

    record(file, lambda: [live(poll)("t"), live(poll)("t")], order="any")
    assert replay(file, lambda: [dead(poll)("u"), dead(poll)("u")]) == ["one", "two"]


def test_what_was_seen_before_tells_records_apart(file):
    def enter(token: str, name: str) -> str:
        return name

    def balance(token: str) -> int:
        return len(token)

    def program(make: Any, first: str, second: str, *order: int) -> Any:
        tokens = [first, second]
        enters, balances = make(enter), make(balance)
        enters(first, "one")
        enters(second, "two")
        return [balances(tokens[n]) for n in order]

    record(file, lambda: program(live, "a", "bb", 0, 1), order="any")
    assert replay(file, lambda: program(dead, "x", "y", 0, 1)) == [1, 2]
    assert replay(file, lambda: program(dead, "x", "y", 1, 0)) == [2, 1]
