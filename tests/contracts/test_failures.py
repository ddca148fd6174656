"""A tool's exceptions: its own class comes back, or a stand-in that says which it was. Nothing named is imported."""

from __future__ import annotations

import builtins
import errno
import sys

import pytest

from toolcassette.contracts import decode_error, encode_error, same
from toolcassette.errors import FormatError, RecordedToolError
from toolcassette.format import decode_tree


class CodedError(Exception):
    def __init__(self, code, msg):
        super().__init__(f"[{code}] {msg}")
        self.code = code


class KeywordError(Exception):
    def __init__(self, *, detail):
        super().__init__()
        self.detail = detail

    def __str__(self):
        return f"detail {self.detail}"


class ChildError(CodedError):
    pass


class SlottedError(Exception):
    __slots__ = ("hidden",)

    def __init__(self, hidden):
        super().__init__("slotted")
        self.hidden = hidden


class PickyError(Exception):
    def __new__(cls, *args, secret=None):
        if secret is None:
            raise TypeError
        return super().__new__(cls, *args)

    def __init__(self, *args, secret=None):
        super().__init__(*args)


class FileTroubleError(OSError):
    def __init__(self, number, text, path, extra):
        super().__init__(number, text, path)
        self.extra = extra


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError


class DataError(Exception):
    code = -32000

    def __init__(self, data):
        super().__init__("rpc failed")
        self.data = data


class ConnectionError(Exception):  # noqa: A001 - a library's own, as many have
    pass


DECLARED = [CodedError, KeywordError, SlottedError, PickyError, FileTroubleError, MuteError]


def attributes_of(exc):
    return {name: value for name, value in vars(exc).items() if name != "__notes__"}


SPECIAL = {
    UnicodeDecodeError: ("utf-8", b"a\xff", 1, 2, "bad byte"),
    UnicodeEncodeError: ("ascii", "a\udcb2", 1, 2, "bad"),
    UnicodeTranslateError: ("a\u00e9", 1, 2, "bad"),
    SyntaxError: ("bad", ("f.py", 1, 2, "x =", 1, 3)),
}
BUILTIN = sorted(
    {
        cls
        for cls in vars(builtins).values()
        if isinstance(cls, type) and issubclass(cls, Exception) and not issubclass(cls, BaseExceptionGroup)
    },
    key=lambda cls: cls.__name__,
)


@pytest.mark.parametrize("cls", BUILTIN)
def test_every_builtin_class_comes_back(cls):
    samples = [cls(*SPECIAL[cls])] if cls in SPECIAL else [cls(), cls("text"), cls("a", 1, (b"x", {"k": None}))]
    for exc in samples:
        data, is_own = encode_error(exc, [])
        back = decode_error(data, [])
        assert is_own
        assert type(back) is cls
        assert (str(back), same(back.args, exc.args)) == (str(exc), None)


@pytest.mark.parametrize(("exc", "names"), [
    (FileNotFoundError(errno.ENOENT, "none", "/a/b", None, "/c"), ("errno", "strerror", "filename", "filename2")),
    (OSError(28, "full", b"raw"), ("errno", "strerror", "filename")),
    (OSError("text"), ("errno", "strerror", "filename")),
    (ImportError("m", name="mod", path="p"), ("msg", "name", "path")),
    (ModuleNotFoundError("m", name="mod"), ("msg", "name", "path")),
    (NameError("m", name="n"), ("name",)),
    (AttributeError("m", name="n", obj=3), ("name",)),
    (StopIteration({"a": 1}), ("value",)),
    (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), ("encoding", "object", "start", "end", "reason")),
    (SyntaxError("bad", ("f.py", 1, 2, "x", 3, 4)), ("msg", "filename", "lineno", "offset", "end_offset")),
])  # fmt: skip
def test_what_builtin_classes_keep_elsewhere_comes_back(exc, names):
    back = decode_error(encode_error(exc, [])[0], [])
    assert str(back) == str(exc)
    assert type(back) is type(exc)
    for name in names:
        assert same(getattr(back, name), getattr(exc, name)) is None


def test_state_that_was_changed_after_the_constructor_comes_back():
    exc = OSError(errno.ENOENT, "x")
    exc.filename = "/later"
    exc.errno = errno.EPERM
    back = decode_error(encode_error(exc, [])[0], [])
    assert isinstance(back, FileNotFoundError)
    assert (back.errno, back.filename, str(back)) == (errno.EPERM, "/later", str(exc))


@pytest.mark.parametrize("exc", [
    CodedError(3, "m"), KeywordError(detail={"a": (1, b"x")}), FileTroubleError(2, "no", "/x", ["more"]),
])  # fmt: skip
def test_declared_classes_come_back_without_their_constructor(exc):
    data, is_own = encode_error(exc, DECLARED)
    back = decode_error(data, DECLARED)
    assert is_own
    assert type(back) is type(exc)
    assert (str(back), back.args, attributes_of(back)) == (str(exc), exc.args, attributes_of(exc))
    if isinstance(exc, FileTroubleError):
        assert isinstance(back, FileTroubleError)
        assert (back.errno, back.filename) == (2, "/x")


@pytest.mark.parametrize(("exc", "declared"), [
    (CodedError(3, "m"), []),  # not declared
    (ChildError(3, "m"), [CodedError]),  # a subclass is another class
    (SlottedError(object()), DECLARED),  # keeps what nobody can see
    (PickyError("x", secret=1), DECLARED),  # cannot be made without its keyword
    (CodedError(object(), "m"), DECLARED),  # an attribute without a lossless form
    (ValueError(object()), []),  # an argument without one
    (ConnectionError("refused"), []),  # not the builtin of this name
])  # fmt: skip
def test_others_come_back_as_the_stand_in(exc, declared):
    data, is_own = encode_error(exc, declared)
    back = decode_error(data, declared)
    assert not is_own
    assert type(back) is RecordedToolError
    assert back.type_name == f"{type(exc).__module__}.{type(exc).__qualname__}"
    assert back.message == str(exc)


def test_a_class_that_calls_itself_builtin_is_not():
    fake = type("ValueError", (Exception,), {"__module__": "builtins"})
    data, is_own = encode_error(fake("x"), [])
    assert not is_own
    assert type(decode_error(data, [])) is RecordedToolError


def test_declaring_a_class_later_brings_it_back():
    data, is_own = encode_error(CodedError(3, "m"), [])
    assert not is_own
    back = decode_error(data, [CodedError])
    assert isinstance(back, CodedError)
    assert back.code == 3


def test_a_class_that_is_no_longer_declared_is_a_stand_in_with_code_and_data():
    back = decode_error(encode_error(DataError({"retry": (1, 2)}), [DataError])[0], [])
    assert isinstance(back, RecordedToolError)
    assert (back.error_code, back.data) == (-32000, {"retry": (1, 2)})
    bare = decode_error(encode_error(DataError(object()), [])[0], [])
    assert isinstance(bare, RecordedToolError)
    assert (bare.error_code, bare.data) == (-32000, None)


def test_notes_are_kept_with_the_class_and_with_the_stand_in():
    for exc in (ValueError("x"), ConnectionError("x")):
        exc.add_note("first")
        exc.add_note("\udcb2")
        back = decode_error(encode_error(exc, [])[0], [])
        assert getattr(back, "__notes__", None) == ["first", "\udcb2"]
    odd = ValueError("x")
    odd.__notes__ = 5  # type: ignore[assignment]
    assert not hasattr(decode_error(encode_error(odd, [])[0], []), "__notes__")


class TextError(Exception):
    def __str__(self):
        return type("Text", (str,), {})("as a subclass of str")


def nested(levels):
    value: list = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("exc", [
    MuteError("x"), TextError(), ValueError("\ud800"), ValueError("x" * 1_000_000), ValueError(10**200_000),
    ValueError(nested(126)), ValueError(nested(500)), ValueError(float("nan"), {"$tc": 1}), KeyError(("a", 1)),
], ids=lambda exc: type(exc).__name__)  # fmt: skip
def test_whatever_an_exception_holds_it_can_be_written_and_read(exc):
    data, is_own = encode_error(exc, [MuteError, TextError])
    assert decode_tree(data)
    back = decode_error(data, [MuteError, TextError])
    assert (type(back) is type(exc)) is is_own
    assert isinstance(back, RecordedToolError) is not is_own


def test_a_mute_exception_is_told_by_its_class():
    data, _ = encode_error(MuteError("x"), [])
    back = decode_error(data, [])
    assert isinstance(back, RecordedToolError)
    assert back.message == "MuteError"


def test_a_property_that_fails_is_no_failure_of_the_recording():
    class TouchyError(Exception):
        @property
        def code(self):
            raise LookupError

    assert type(decode_error(encode_error(TouchyError("x"), [])[0], [])) is RecordedToolError


def test_what_is_written_is_what_was_proven_though_a_property_counts():
    class CountingError(Exception):
        asked = 0

        @property
        def code(self):
            type(self).asked += 1
            return self.asked

    back = decode_error(encode_error(CountingError("x"), [])[0], [])
    assert isinstance(back, RecordedToolError)
    assert (back.error_code, CountingError.asked) == (1, 1)


def test_attributes_under_strange_names_are_not_lost_silently():
    exc = CodedError(1, "m")
    vars(exc)["$tc"] = "bytes"
    data, is_own = encode_error(exc, [CodedError])
    assert not is_own
    assert type(decode_error(data, [CodedError])) is RecordedToolError
    undeclared, _ = encode_error(exc, [])
    assert type(decode_error(undeclared, [CodedError])) is RecordedToolError


@pytest.mark.parametrize("name", [
    "os.system", "this.ValueError", "antigravity.Error", "ValueError", "builtins.eval", "builtins.SystemExit",
    "builtins.KeyboardInterrupt", "builtins.ExceptionGroup", "builtins.__import__", "idlelib.idle.main",
])  # fmt: skip
def test_nothing_named_in_a_file_is_imported_called_or_raised(name):
    before = set(sys.modules)
    back = decode_error(f'{{"type":"{name}","message":"m","args":["echo hi"]}}'.encode(), [CodedError])
    assert type(back) is RecordedToolError
    assert back.type_name == name
    assert set(sys.modules) == before


def test_crafted_state_reaches_nothing_but_the_builtin_slots():
    for state in ('{"__class__":1}', '{"args":[1]}', '{"filename":1,"nonsense":2}'):
        data = f'{{"type":"builtins.OSError","message":"m","args":["x"],"state":{state}}}'.encode()
        assert type(decode_error(data, [])) is RecordedToolError
    turned = b'{"type":"builtins.OSError","message":"m","args":[2,"x"]}'  # the constructor makes another class of it
    assert type(decode_error(turned, [])) is RecordedToolError
    bad_args = b'{"type":"builtins.UnicodeDecodeError","message":"m","args":[]}'
    assert type(decode_error(bad_args, [])) is RecordedToolError


@pytest.mark.parametrize("data", [
    b"1", b"{}", b'{"type":"","message":"m"}', b'{"type":"x"}', b'{"message":"m","type":"x"}',
    b'{"type":"x","message":1}', b'{"type":"x","message":"m","other":1}', b'{"type":"x","message":"m","args":1}',
    b'{"type":"x","message":"m","notes":[1]}', b'{"type":"x","message":"m","data":{"$tc":"nonsense"}}',
    b'{"type": "x","message":"m"}',
])  # fmt: skip
def test_what_is_no_error_body_is_refused(data):
    with pytest.raises(FormatError) as caught:
        decode_error(data, [])
    assert caught.value.reason == "bulk"


def test_every_decoding_is_fresh():
    data, _ = encode_error(KeywordError(detail=[1]), [KeywordError])
    one, other = decode_error(data, [KeywordError]), decode_error(data, [KeywordError])
    assert isinstance(one, KeywordError)
    assert isinstance(other, KeywordError)
    one.detail.append(2)
    assert other.detail == [1]
