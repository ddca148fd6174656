"""Types and exceptions that a registry knows: code decides how they are kept, never the file."""

from __future__ import annotations

import dataclasses
import decimal
import sys
from typing import Any

import pytest

import toolcassette as tc
from toolcassette.contracts import Extensions, contract_for, decode_error, encode_args, encode_error, same
from toolcassette.errors import ContractMismatch, FormatError, RecordedToolError, UnrecordableValue


class Money:
    def __init__(self, amount: Any, currency: str) -> None:
        self.amount = amount
        self.currency = currency


class Cents(Money):
    pass


@dataclasses.dataclass
class Bill:
    total: Money
    items: list[Money | None]


def to_list(money: Money) -> list[Any]:
    return [money.amount, money.currency]


def from_list(value: Any) -> Money:
    return Money(*value)


def known(encode: Any = to_list, decode: Any = from_list) -> Extensions:
    extensions = Extensions()
    extensions.register_type(Money, encode, decode, "money")
    return extensions


TEN = Money(decimal.Decimal("1.10"), "canary")
TREE = '{"$tc":"x-money","v":[{"$tc":"decimal","v":"1.10"},"canary"]}'


@pytest.mark.parametrize(("annotation", "value", "text"), [
    (Any, TEN, TREE),
    (Any, [{"a": (TEN,)}], f'[{{"a":{{"$tc":"tuple","v":[{TREE}]}}}}]'),
    (Money, TEN, TREE),
    (Money | None, TEN, TREE),
    (Money | str, "a", '"a"'),
    (list[Money], [TEN], f"[{TREE}]"),
    (dict[str, Any], {"a": TEN}, f'{{"a":{TREE}}}'),
    (Bill, Bill(TEN, [None, TEN]), f'{{"total":{TREE},"items":[null,{TREE}]}}'),
], ids=range(8))  # fmt: skip
def test_comes_back_untyped_typed_and_nested(annotation, value, text):
    contract = contract_for(annotation, extensions=known())
    data, copy = contract.round_trip(value)
    assert data.decode() == text
    assert contract.encode(copy) == data
    assert type(copy) is type(value)


def test_the_copy_is_another_instance_of_exactly_the_class():
    copy: Any = contract_for(Money, extensions=known()).round_trip(TEN)[1]
    assert type(copy) is Money
    assert copy is not TEN
    assert (copy.amount, copy.currency) == (TEN.amount, TEN.currency)


@pytest.mark.parametrize("annotation", [Any, Money, list, Bill])
def test_a_subclass_is_another_class(annotation):
    value = {Any: Cents(1, "c"), Money: Cents(1, "c"), list: [Cents(1, "c")], Bill: Bill(Cents(1, "c"), [])}[annotation]
    with pytest.raises(UnrecordableValue) as caught:
        contract_for(annotation, extensions=known()).round_trip(value)
    assert caught.value.type_name == "Cents"


def test_a_registration_decides_for_a_class_that_a_door_knows():
    extensions = Extensions()
    extensions.register_type(Bill, lambda bill: "kept", lambda _: Bill(TEN, []), "x-bill")
    assert contract_for(Bill, extensions=extensions).encode(Bill(TEN, [])) == b'{"$tc":"x-bill","v":"kept"}'
    assert encode_args({"b": Bill(TEN, [])}, extensions=extensions) == b'{"b":{"$tc":"x-bill","v":"kept"}}'


def test_as_arguments_they_are_compared_by_what_is_written():
    def key(value: object) -> bytes:
        return encode_args({"v": value}, extensions=known())

    assert key(Money(1, "e")) == key(Money(1, "e"))
    different = [
        Money(1, "e"),
        Money(1.0, "e"),
        Money(2, "e"),
        [1, "e"],
        [Money(1, "e")],
        {"$tc": "x-money", "v": [1, "e"]},
    ]
    assert len({key(value) for value in different}) == len(different)
    with pytest.raises(UnrecordableValue, match="omit"):
        encode_args({"v": TEN})


def boom(_: Any) -> Any:
    raise RuntimeError("canary")


@pytest.mark.parametrize(("encode", "why"), [
    (boom, "RuntimeError"),
    (lambda _: object(), "lossless"),
    (lambda money: money, "nested deeper"),
    (lambda _: [1], "does not come back"),  # decode cannot do with it
    (lambda _: [1, 2, 3], "does not come back"),
])  # fmt: skip
def test_a_function_of_the_users_that_fails_is_a_refusal(encode, why):
    for annotation, value in ((Any, [TEN]), (Money, TEN)):
        with pytest.raises(UnrecordableValue, match=why) as caught:
            contract_for(annotation, extensions=known(encode)).round_trip(value)
        assert "canary" not in str(caught.value)
    if why == "RuntimeError":
        with pytest.raises(UnrecordableValue, match=why) as caught:
            encode_args({"a": [TEN]}, extensions=known(encode))
        assert caught.value.json_path == "$.a[0]"
        assert "canary" not in str(caught.value)


@pytest.mark.parametrize("decode", [boom, lambda _: None, lambda _: Cents(1, "c")])
def test_reading_that_fails_is_a_mismatch_with_its_place(decode):
    for annotation, text, path in (
        (Any, f'{{"a":[1,{{"$tc":"tuple","v":[{TREE}]}}]}}', "$.a[1][0]"),
        (Any, f'{{"$tc":"ordered","v":[["k",{TREE}]]}}', "$[0][1]"),
        (dict[str, Money], f'{{"a":{TREE}}}', "$.a"),
    ):
        with pytest.raises(ContractMismatch) as caught:
            contract_for(annotation, extensions=known(decode=decode)).decode(text.encode())
        assert (caught.value.json_path, caught.value.wanted) == (path, "Money")
        assert "canary" not in str(caught.value)


def test_a_tag_that_nobody_registered_is_refused_and_nothing_is_imported():
    before = set(sys.modules)
    for text, wanted in (
        ('[{"$tc":"x-antigravity","v":1}]', "x-antigravity"),
        ('{"$tc":"x-this.s","v":[]}', "x-this.s"),
    ):
        for extensions in (Extensions(), known()):
            with pytest.raises(ContractMismatch, match=wanted):
                contract_for(extensions=extensions).decode(text.encode())
    with pytest.raises(ContractMismatch):
        contract_for(Money, extensions=known()).decode(b'{"$tc":"x-other","v":[1,"e"]}')
    for broken in (b'{"$tc":"money","v":[1,"e"]}', b'{"$tc":"x-money","a":1,"v":[1,"e"]}', b'{"$tc":"x-money"}'):
        with pytest.raises(FormatError):
            contract_for(extensions=known()).decode(broken)
    assert not {"antigravity", "this"} & (set(sys.modules) - before)


@pytest.mark.parametrize(("cls", "encode", "decode", "tag", "error"), [
    ("Money", to_list, from_list, "a", TypeError),
    (Money, None, from_list, "a", TypeError),
    (Money, to_list, 3, "a", TypeError),
    (int, to_list, from_list, "a", ValueError),  # has a form of its own
    (Money, to_list, from_list, "tuple", ValueError),  # the format's own tags
    (Money, to_list, from_list, "object", ValueError),
    (Money, to_list, from_list, "", ValueError),
    (Money, to_list, from_list, "a b", ValueError),
    (Money, to_list, from_list, "a\n", ValueError),
    (Money, to_list, from_list, 3, ValueError),
    (Money, to_list, from_list, "bill", ValueError),  # taken by another class
    (Bill, to_list, from_list, "bill2", ValueError),  # taken by another tag
])  # fmt: skip
def test_a_registration_that_cannot_be(cls, encode, decode, tag, error):
    extensions = Extensions()
    extensions.register_type(Bill, to_list, from_list, "bill")
    with pytest.raises(error):
        extensions.register_type(cls, encode, decode, tag)


def test_a_class_that_is_defined_again_replaces_itself():
    def define() -> type:
        class Again:
            pass

        return Again

    extensions = Extensions()
    first, second = define(), define()
    extensions.register_type(first, lambda _: 1, lambda _: first(), "again")
    extensions.register_type(second, lambda _: 2, lambda _: second(), "x-again")
    assert contract_for(extensions=extensions).encode(second()) == b'{"$tc":"x-again","v":2}'
    with pytest.raises(UnrecordableValue):
        contract_for(extensions=extensions).encode(first())


class FakeArray:
    """Looks like what it is not; real ones are told by the name of their module too."""


FakeArray.__module__ = "numpy"
FakeArray.__qualname__ = FakeArray.__name__ = "ndarray"
FakeScalar = type("float64", (float,), {"__module__": "numpy"})
FakeFrame = type("DataFrame", (), {"__module__": "pandas.core.frame"})


@pytest.mark.parametrize("value", [FakeArray(), FakeScalar(1.5), FakeFrame()])
def test_arrays_and_frames_are_refused_with_the_place_and_what_to_do(value):
    name = type(value).__name__
    for annotation, whole, path in (
        (Any, {"rows": [value]}, "$.rows[0]"),
        (float, value, "$"),
        (list[float], [value], "$[0]"),
    ):
        with pytest.raises(UnrecordableValue, match=rf"register_type\({name}, encode, decode, tag\)") as caught:
            contract_for(annotation).round_trip(whole)
        assert (caught.value.json_path, caught.value.type_name) == (path, name)
    with pytest.raises(UnrecordableValue, match="register_type") as caught:
        encode_args({"x": [value]})
    assert caught.value.json_path == "$.x[0]"
    with pytest.raises(UnrecordableValue, match="register_type"):
        contract_for(type(value))
    extensions = Extensions()
    extensions.register_type(type(value), lambda _: [1.5], lambda _: value, "array")
    assert contract_for(type(value), extensions=extensions).round_trip(value)[1] is value


class KeywordError(Exception):
    def __init__(self, *, detail: Any) -> None:
        super().__init__()
        self.detail = detail
        self.lock = object()  # has no lossless form

    def __str__(self) -> str:
        return f"detail {self.detail}"


def with_errors(
    encode: Any = lambda e: {"d": e.detail}, decode: Any = lambda v: KeywordError(detail=v["d"])
) -> Extensions:
    extensions = Extensions()
    extensions.register_error(KeywordError, encode, decode)
    return extensions


def test_a_registered_exception_comes_back_with_notes_and_cause():
    error = KeywordError(detail=(1,))
    error.add_note("seen")
    error.__cause__ = KeyError("k")
    data, is_own = encode_error(error, [], extensions=with_errors())
    back: Any = decode_error(data, [], extensions=with_errors())
    assert is_own
    assert (type(back), back.detail, back.__notes__, repr(back.__cause__)) == (
        KeywordError,
        (1,),
        ["seen"],
        "KeyError('k')",
    )
    assert same(vars(error)["detail"], back.detail) is None
    assert not encode_error(error, [KeywordError])[1]  # errors=[...] alone cannot: the lock


def test_without_the_registration_it_is_the_stand_in_with_its_data():
    data, _ = encode_error(KeywordError(detail=5), [], extensions=with_errors())
    back = decode_error(data, [])
    assert isinstance(back, RecordedToolError)
    assert (back.type_name, back.message, back.data) == (f"{__name__}.KeywordError", "detail 5", {"d": 5})


def test_functions_for_an_exception_that_fail():
    for extensions in (with_errors(encode=boom), with_errors(decode=boom), with_errors(decode=lambda _: ValueError())):
        with pytest.raises(UnrecordableValue) as caught:
            encode_error(KeywordError(detail="canary"), [], extensions=extensions)
        assert caught.value.type_name == "KeywordError"
        assert "canary" not in str(caught.value)
    data, _ = encode_error(KeywordError(detail="canary"), [], extensions=with_errors())
    with pytest.raises(ContractMismatch) as mismatch:
        decode_error(data, [], extensions=with_errors(decode=boom))
    assert "canary" not in str(mismatch.value)
    for cls in (int, "x", KeyboardInterrupt):
        with pytest.raises(TypeError):
            Extensions().register_error(cls, boom, boom)  # type: ignore[arg-type]


def test_through_a_registry_from_call_to_replay():
    tools = tc.Registry()
    tools.register_type(Money, to_list, from_list, "money")
    tools.register_error(KeywordError, lambda e: e.detail, lambda v: KeywordError(detail=v))
    ran: list[int] = []

    def pay(money: Money, more: dict[str, Any]) -> Money:
        ran.append(1)
        if money.amount < 0:
            raise KeywordError(detail=money.amount)
        return Money(money.amount + 1, money.currency)

    tool: Any = tools.wrap(pay)

    def program() -> list[Any]:
        paid = tool(Money(1, "e"), {"deep": [Money(2, "e")]})
        with pytest.raises(KeywordError) as caught:
            tool(Money(-1, "e"), {})
        return [paid.amount, paid.currency, caught.value.detail]

    store = tc.MemoryStore()
    with tc.record("m", ["*"], store=store):
        live = program()
    with tc.replay("m", store=store):
        again = program()
    assert live == again == [2, "e", -1]
    assert len(ran) == 2
    with pytest.raises(tc.CassetteMismatch), tc.replay("m", store=store):
        tool(Money(3, "e"), {})


def test_a_type_that_is_registered_after_the_first_call_is_known_at_the_next():
    tools = tc.Registry()
    tool: Any = tools.wrap(lambda: TEN, name="late", returns=Money)
    with pytest.raises(UnrecordableValue), tc.record("a", ["*"], store=tc.MemoryStore()):
        tool()
    tools.register_type(Money, to_list, from_list, "money")
    with tc.record("b", ["*"], store=tc.MemoryStore()):
        assert tool().currency == "canary"


def test_the_default_registry_has_them_too(monkeypatch):
    class Local:
        pass

    class LocalError(Exception):
        pass

    extensions = Extensions()  # in place of the process's own, for this test
    for name in ("_types", "_tags", "_errors", "alike"):
        monkeypatch.setattr(tc.tools.default_registry.extensions, name, getattr(extensions, name))
    tc.register_type(Local, lambda _: 1, lambda _: Local(), "local")
    tc.register_error(LocalError, lambda _: 1, lambda _: LocalError("again"))

    @tc.cassette_tool
    def local(fail: bool) -> Local:
        if fail:
            raise LocalError(object())
        return Local()

    store = tc.MemoryStore()
    for session in (tc.record("d", ["local"], store=store), tc.replay("d", store=store)):
        with session:
            assert type(local(fail=False)) is Local
            with pytest.raises(LocalError):
                local(fail=True)


def test_reprs_show_no_value():
    assert repr(known()) == "<Extensions types=1 errors=0>"
