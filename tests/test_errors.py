"""The error tree: it survives pickling, its codes are its own, and no error ever shows a value, a line or a path."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import logging
import pickle
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import toolcassette as tc
from tests.engine.doubles import NAME, WatchedStore, resealed
from tests.stores.conftest import FaultyOps
from toolcassette import errors
from toolcassette.crypto import Identity, Note, Signer
from toolcassette.engine.path import scope
from toolcassette.format.chain import Chain
from toolcassette.process import STATUS_VARIABLE, _Process
from toolcassette.reasons import (
    COULD_NOT_JUDGE,
    EXISTS_ADVICE,
    NO_SESSION_REASONS,
    NOT_PUBLISHED_REASONS,
    REDACTION_REASONS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLASSES = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, errors.CassetteError)]

FIRST = tc.CassetteMismatch("arguments_differ", tool="t", path=("a",), ordinal=3, differs=("$.a",), fingerprint="f")
EXAMPLES: list[errors.CassetteError] = [
    tc.CassetteError("words"),
    tc.FormatError("hash", frame=3, offset=99),
    tc.StoreError("sync the partial", errno_name="EIO", advice="go on"),
    tc.CassetteExists("live_partial"),
    tc.NotPublished("open_call", detail="2 open"),
    tc.NestedSelection(tool="in", inside="out"),
    tc.IncludeUnused(["a", "b*"]),
    tc.SignatureError("signature_wrong", key="ci.example/recorder"),
    tc.EncryptionError("forged", frame=3),
    tc.UnrecordableValue(json_path="$.a", type_name="object", why="has no form").of("t"),
    tc.RedactionError("rule_failed", rule="mine", json_path="$.a", detail="OSError").of("t"),
    tc.SecretFound([(1, "$.args.key", "api-key")]),
    FIRST,
    tc.CassettePoisoned(FIRST),
    tc.ContractMismatch(json_path="$", wanted="int").at("t", ("a",), 1),
    tc.UnconsumedCalls([tc.LeftOver("t", ("a",), 0, wrapped=False)]),
    tc.CacheMiss("t"),
    tc.CacheExpired("t", age=3.5, max_age=1),
    tc.NotSelected("t"),
    tc.NoSession("older_thread", tool="t"),
    errors.AmbiguousScope("researcher"),
    tc.SessionClosed("t"),
    tc.RecordedToolError("pkg.Error", "words", error_code=5, data={"a": [1]}),
    tc.ToolCancelled("t"),
]


def test_there_is_an_example_of_every_class():
    assert {type(error) for error in EXAMPLES} == set(CLASSES)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "carry",
    [copy.copy, copy.deepcopy, *[lambda e, p=p: pickle.loads(pickle.dumps(e, p)) for p in range(2, 6)]],
)
def test_an_error_survives_the_way_to_another_process(error, carry):
    error.__dict__.pop("__notes__", None)
    error.add_note("noted")
    back = carry(error)
    assert type(back) is type(error)
    assert back is not error
    assert (str(back), back.args, vars(back)) == (str(error), error.args, vars(error))
    assert (back.code, back.exit_status) == (error.code, error.exit_status)
    assert back.__notes__ == ["noted"]


def test_codes_are_stable_and_each_class_has_its_own():
    codes = [cls.__dict__["code"] for cls in CLASSES]
    assert len(set(codes)) == len(CLASSES)
    assert all(code.startswith("CASSETTE_") and code.isupper() for code in codes)


def test_exit_statuses():
    assert {cls.__name__: cls.exit_status for cls in CLASSES if cls.exit_status != 1} == {
        "CassetteError": 2,
        "FormatError": 2,  # by reason, see below
        "StoreError": 2,
        "CassetteExists": 2,
        "EncryptionError": 2,  # by reason, see below
    }


@pytest.mark.parametrize("reason", errors.FORMAT_REASONS)
def test_every_format_reason_has_words(reason):
    what, advice = errors.FORMAT_REASONS[reason]
    assert what
    assert advice
    error = tc.FormatError(reason, frame=7, offset=100)
    assert str(error) == f"{what} at frame 7 ({reason}); {advice}"
    assert (error.reason, error.frame, error.offset) == (reason, 7, 100)
    assert error.exit_status == (2 if reason in COULD_NOT_JUDGE else 1)
    assert " at frame" not in str(tc.FormatError(reason))


@pytest.mark.parametrize("reason", errors.SIGNATURE_REASONS)
def test_every_signature_reason_has_words(reason):
    what, advice, exit_status = errors.SIGNATURE_REASONS[reason]
    assert what
    assert advice
    assert exit_status in (1, 2)
    error = tc.SignatureError(reason, key="ann")
    assert str(error) == f"{what}: ann ({reason}); {advice}"
    assert (error.reason, error.key, error.exit_status) == (reason, "ann", exit_status)
    assert str(tc.SignatureError(reason)) == f"{what} ({reason}); {advice}"


@pytest.mark.parametrize("reason", errors.ENCRYPTION_REASONS)
def test_every_encryption_reason_has_words(reason):
    what, advice, exit_status = errors.ENCRYPTION_REASONS[reason]
    assert what
    assert advice
    error = tc.EncryptionError(reason, frame=7)
    assert str(error) == f"{what} at frame 7 ({reason}); {advice}"
    assert (error.reason, error.frame, error.exit_status) == (reason, 7, exit_status)
    assert exit_status in (1, 2)
    assert " at frame" not in str(tc.EncryptionError(reason))


@pytest.mark.parametrize("reason", errors.MISMATCH_REASONS)
def test_every_mismatch_reason_has_words(reason):
    error = tc.CassetteMismatch(reason, tool="t")
    assert str(error) == f"{errors.MISMATCH_REASONS[reason]} ({reason}): tool t, path /, ordinal 0"


@pytest.mark.parametrize(
    ("make", "reasons"),
    [
        (tc.NotPublished, NOT_PUBLISHED_REASONS),
        (lambda reason: tc.NoSession(reason, tool="t"), NO_SESSION_REASONS),
        (lambda reason: tc.RedactionError(reason, rule="r"), {r: what for r, (what, _) in REDACTION_REASONS.items()}),
        (tc.CassetteExists, EXISTS_ADVICE),
    ],
)
def test_every_other_reason_has_words(make, reasons):
    assert reasons
    for reason, words in reasons.items():
        assert words in str(make(reason))
        with pytest.raises(KeyError):
            make("no such reason")


NASTY = "a\x1b[31m\u202e\u200b\nb"


@pytest.mark.parametrize(
    "error",
    [
        tc.NotSelected(NASTY),
        tc.SessionClosed(NASTY),
        tc.ToolCancelled(NASTY),
        tc.NoSession("forbidden", tool=NASTY),
        tc.IncludeUnused([NASTY]),
        tc.SignatureError("signature_wrong", key=NASTY),
        tc.NestedSelection(tool=NASTY, inside=NASTY),
        tc.CassetteMismatch("exhausted", tool=NASTY, path=[NASTY], differs=[NASTY]),
        tc.CassettePoisoned(tc.CassetteMismatch("exhausted", tool=NASTY, path=[NASTY])),
        tc.ContractMismatch(json_path=NASTY, wanted=NASTY, tool=NASTY),
        tc.UnconsumedCalls([tc.LeftOver(NASTY, (NASTY,), 0, wrapped=True)]),
        tc.UnrecordableValue(json_path=NASTY, type_name=NASTY, why="x", tool=NASTY),
        tc.RecordedToolError(NASTY, ""),
        tc.RedactionError("rule_failed", rule=NASTY, json_path=NASTY, detail=NASTY, tool=NASTY),
        tc.SecretFound([(0, NASTY, NASTY)]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_names_are_shown_escaped(error):
    assert str(error).isprintable()
    assert "\\x1b" in str(error)


def test_a_long_list_is_cut():
    rows = [tc.LeftOver(f"t{n}", (), n, wrapped=True) for n in range(1000)]
    error = tc.UnconsumedCalls(rows)
    assert len(error.calls) == 1000
    assert "and 990 more" in str(error)
    assert len(str(error)) < 1000


# -- the canary -------------------------------------------------------------------------------------------------------

CANARY = "cn4ry"  # in every argument, result, line and path below, and never in what is said


class Holder:
    def __repr__(self) -> str:
        return CANARY

    __str__ = __repr__


class Scene:
    """A folder and tools, all full of canaries."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / CANARY
        self.folder.mkdir()
        self.file = self.folder / f"{CANARY}.cassette.jsonl"
        wrap = tc.Registry().wrap
        self.echo: Callable[..., Any] = wrap(lambda value, more=0: value, name="echo")
        self.other: Callable[..., Any] = wrap(lambda value: value, name="other")
        self.outer: Callable[..., Any] = wrap(lambda value: self.echo(value), name="outer")

    def cassette(self, value: object = CANARY) -> Path:
        """Two calls of echo and one of other."""
        with tc.record(self.file, ["echo", "other"]):
            self.echo(value)
            self.other([value])
            self.echo({"deep": [value]})
        return self.file

    def record(self, **options: Any) -> tc.Recorder:
        return tc.record(self.file, ["echo", "other", "outer", "hang"], **options)


def damaged(data: bytes) -> Callable[[Scene], None]:
    def run(scene: Scene) -> None:
        scene.file.write_bytes(data.replace(b"CANARY", CANARY.encode()))
        with tc.replay(scene.file):
            pass

    return run


def changed(change: Callable[[bytes], bytes]) -> Callable[[Scene], None]:
    def run(scene: Scene) -> None:
        file = scene.cassette()
        file.write_bytes(change(file.read_bytes()))
        tc.read_cassette(file)

    return run


def replaying(*calls: Callable[[Scene], Any]) -> Callable[[Scene], None]:
    def run(scene: Scene) -> None:
        with tc.replay(scene.cassette()):
            for call in calls:
                call(scene)

    return run


def poisoned(scene: Scene) -> None:
    with tc.replay(scene.cassette()):
        with pytest.raises(tc.CassetteMismatch):
            scene.echo(CANARY * 2)
        scene.echo(CANARY)


def contract(scene: Scene) -> None:
    def echo(value: str, more: int = 0) -> int:
        raise AssertionError

    scene.cassette()
    with tc.replay(scene.file):
        tc.Registry().wrap(echo)(CANARY)


def not_canonical(scene: Scene) -> None:
    file = scene.cassette([CANARY])
    canary = CANARY.encode()
    file.write_bytes(resealed(file.read_bytes(), b'"value":["%b"],"prev"' % canary, b'"value":["%b" ],"prev"' % canary))
    with tc.replay(file):
        scene.echo([CANARY])


def unrecordable_argument(scene: Scene) -> None:
    with scene.record():
        scene.echo([{"deep": Holder()}])


def unrecordable_in_replay(scene: Scene) -> None:
    with tc.replay(scene.cassette()):
        scene.echo(Holder())


def unrecordable_result(scene: Scene) -> None:
    with scene.record():
        tc.Registry().wrap(lambda: {"deep": Holder(), "more": CANARY}, name="echo")()


def wrong_annotation(scene: Scene) -> None:
    def echo(value: str) -> int:
        return value  # type: ignore[return-value]  # wrong on purpose

    with scene.record():
        tc.Registry().wrap(echo)(CANARY)


def exists(scene: Scene) -> None:
    scene.cassette()
    scene.record().__enter__()


def live_partial(scene: Scene) -> None:
    with scene.record(publish_on_error=True):
        scene.echo(CANARY)
        scene.record().__enter__()


def stale_partial(scene: Scene) -> None:
    with pytest.raises(tc.NotPublished), scene.record():
        pass
    scene.record().__enter__()


def no_folder(scene: Scene) -> None:
    scene.file.write_bytes(b"")
    tc.record(scene.file / CANARY, ["echo"]).__enter__()


def system_refuses(step: str, number: int) -> Callable[[Scene], None]:
    def run(scene: Scene) -> None:
        with tc.record(scene.file, ["echo"], store=tc.FileStore(FaultyOps(**{step: number}))):
            scene.echo(CANARY)

    return run


def system_refuses_reading(scene: Scene) -> None:
    scene.file.write_bytes(b"")
    tc.read_cassette(scene.file, store=tc.FileStore(FaultyOps(open_read=13)))


def open_call(scene: Scene) -> None:
    def echo(value: str) -> None:
        raise KeyboardInterrupt

    with scene.record():
        with pytest.raises(KeyboardInterrupt):
            tc.Registry().wrap(echo)(CANARY)


def block_raised(scene: Scene) -> None:
    session = scene.record()
    with pytest.raises(ValueError), session:
        scene.echo(CANARY)
        raise ValueError(CANARY)
    assert session.verdict is not None
    assert session.verdict.error is not None
    raise session.verdict.error


def nested(scene: Scene) -> None:
    with scene.record():
        scene.outer(CANARY)


def unused(scene: Scene) -> None:
    with tc.record(scene.file, ["echo", "nobody"], strict_include=True):
        scene.echo(CANARY)


def cached(scene: Scene, **options: Any) -> str:
    return tc.cache(scene.folder, **options).wrap(lambda value: value)(CANARY)


def not_selected(scene: Scene) -> None:
    with tc.replay(scene.cassette()):
        scene.outer(CANARY)


def signed(scene: Scene) -> Path:
    key = scene.folder / f"{CANARY}.key"
    signer = Signer.generate("ci.example/recorder")
    key.write_bytes(signer.to_bytes())
    key.with_suffix(".pub").write_text(f"{signer.verifier}\n", "utf-8")
    tc.sign(scene.cassette(), key)
    return key.with_suffix(".pub")


def unsigned(scene: Scene) -> None:
    keys = signed(scene)
    Path(f"{scene.file}.sig").unlink()
    with tc.replay(scene.file, trusted_keys=[str(keys)], require_signature=True):
        pass


def encrypted(scene: Scene) -> Path:
    """A cassette, and the identity that opens it."""
    identity = scene.folder / "identity"
    identity.write_bytes(Identity.from_seed(bytes(32)).to_bytes())
    with scene.record(recipients=[str(Identity.from_seed(bytes(32)).recipient)]):
        scene.echo(CANARY)
    return identity


def without_identity(scene: Scene) -> None:
    encrypted(scene)
    tc.read_cassette(scene.file)


def wrong_identity(scene: Scene) -> None:
    encrypted(scene).write_bytes(Identity.from_seed(bytes([1] * 32)).to_bytes())
    tc.read_cassette(scene.file, identities=[str(scene.folder / "identity")])


def forged(scene: Scene) -> None:
    identity = encrypted(scene)
    chain, lines = Chain(), scene.file.read_bytes().splitlines()
    lines[1] = lines[1].replace(b'"enc":"', b'"enc":"AAAA')
    scene.file.write_bytes(b"".join(chain.link(line[: line.rindex(b',"prev":"')]) for line in lines))
    tc.read_cassette(scene.file, identities=[str(identity)])


def identity_that_is_gone(scene: Scene) -> None:
    encrypted(scene).unlink()
    tc.read_cassette(scene.file, identities=[str(scene.folder / "identity")])


def stale_signature(scene: Scene) -> None:
    keys = signed(scene)
    with tc.record(scene.file, ["echo"], replace=True):
        scene.echo(CANARY + "?")
    with tc.replay(scene.file, trusted_keys=[str(keys)]):
        pass


def wrong_signature(scene: Scene) -> None:
    keys = signed(scene)
    sidecar = Path(f"{scene.file}.sig")
    note = Note.parse(sidecar.read_bytes())
    sidecar.write_bytes(Note(note.text, (note.lines[0]._replace(signature=bytes(64)),)).to_bytes())
    with tc.replay(scene.file, trusted_keys=[str(keys)]):
        pass


def key_file_that_is_gone(scene: Scene) -> None:
    tc.replay(scene.cassette(), trusted_keys=[str(scene.folder / "gone")])


def key_file_without_a_key(scene: Scene) -> None:
    key = scene.folder / CANARY
    key.write_text(f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n", "utf-8")
    tc.sign(scene.cassette(), key)


def forbidden(scene: Scene) -> None:
    with tc.forbid_live():
        scene.echo(CANARY)


def closed(scene: Scene) -> None:
    async def program() -> None:
        go = asyncio.Event()

        async def leaked() -> None:
            await go.wait()
            scene.echo(CANARY)

        async with scene.record():
            scene.echo(CANARY)
            task = asyncio.ensure_future(leaked())
        go.set()
        await task

    asyncio.run(program())


def other_process(scene: Scene) -> None:
    status = scene.folder / "status"
    status.write_text(CANARY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STATUS_VARIABLE, str(status))
        patch.setenv("TOOLCASSETTE_MODE", "record")
        patch.setenv("TOOLCASSETTE_FILE", str(scene.file))
        patch.setenv("TOOLCASSETTE_INCLUDE", "echo")
        _Process().session_for("echo")


def same_scope(scene: Scene) -> None:
    with scene.record(publish_on_error=True):
        elsewhere = contextvars.copy_context()  # as a second task would have it
        with scope("researcher"):
            scene.echo(CANARY)
            elsewhere.run(scope("researcher").__enter__)


async def _hang(value: str) -> None:
    await asyncio.sleep(60)


def cancelled(scene: Scene) -> None:
    hang = tc.Registry().wrap(_hang, name="hang")

    async def program(session: tc.Session) -> None:
        async with session:
            await asyncio.wait_for(hang(CANARY), 0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(program(scene.record(publish_on_error=True)))

    async def again() -> None:
        async with tc.replay(scene.file, cancelled="raise"):
            await hang(CANARY)

    asyncio.run(again())


def too_long(scene: Scene) -> None:
    with scene.record(line_bytes_max=1024):
        scene.echo(CANARY * 1000)


def secret_found(scene: Scene) -> None:
    with scene.record(redact=False):
        scene.echo({CANARY: {"password": CANARY}, "text": [f"see {CANARY}"]})
    tc.replay(scene.file, secrets=[CANARY]).__enter__()


def broken_rule(scene: Scene) -> None:
    def broken(text: str) -> list[str]:
        raise OSError(text)

    with scene.record(redact=[tc.Redact(broken, id="mine")]):
        scene.echo(CANARY)


def breaks_contract(scene: Scene) -> None:
    def echo(value: str) -> dict[str, int]:
        return {"pin": 9381}

    with scene.record(redact=["$.pin"]):
        tc.Registry().wrap(echo)(CANARY)


def ambiguous(scene: Scene) -> None:
    def echo(password: str) -> int:
        return len(password)

    login = tc.Registry().wrap(echo)
    with scene.record(order="any"):
        login(CANARY)
        login(CANARY * 2)
    with tc.replay(scene.file):
        login(CANARY * 3)


def rules_unknown(scene: Scene) -> None:
    file = scene.cassette()
    file.write_bytes(resealed(file.read_bytes(), b'"default/1"', b'"default/%d"' % 10**9))
    tc.replay(file).__enter__()


def nan(scene: Scene) -> Any:
    return scene.echo(CANARY, more=1)


# what provokes it -> (class, reason)
SCENES: list[tuple[Callable[[Scene], Any], type[errors.CassetteError], str | None]] = [
    (lambda s: tc.read_cassette(s.file), tc.FormatError, "absent"),
    (lambda s: tc.inspect(s.folder), tc.FormatError, "not_a_file"),
    (system_refuses_reading, tc.FormatError, "unreadable"),
    (damaged(b""), tc.FormatError, "empty"),
    (damaged(b"CANARY\n"), tc.FormatError, "not_a_cassette"),
    (damaged(b'{"CANARY":"CANARY"}\n'), tc.FormatError, "not_a_cassette"),
    (damaged(b"version https://git-lfs.github.com/spec/v1\noid CANARY\n"), tc.FormatError, "lfs_pointer"),
    (changed(lambda d: d.replace(b"cn4ry", b"cn4rx", 1) + b"cn4ry"), tc.FormatError, "hash"),
    (changed(lambda d: d[:-1]), tc.FormatError, "final_newline_missing"),
    (changed(lambda d: d[:-90]), tc.FormatError, "torn"),
    (changed(lambda d: d + d), tc.FormatError, "after_complete"),
    (changed(lambda d: b"".join(d.splitlines(keepends=True)[:-1])), tc.FormatError, "tail_missing"),
    (changed(lambda d: b"".join(d.splitlines(keepends=True)[::2])), tc.FormatError, "link"),
    (changed(lambda d: d.replace(b"\n", b"\r\n")), tc.FormatError, "crlf"),
    (changed(lambda d: d.replace(b"\n", b"\n<<<<<<< cn4ry\n", 1)), tc.FormatError, "conflict_markers"),
    (changed(lambda d: resealed(d, b'"seq":2', b'"seq":3')), tc.FormatError, "seq"),
    (changed(lambda d: resealed(d, b'"call":1', b'"call":7')), tc.FormatError, "call_number"),
    (changed(lambda d: resealed(d, b'"calls":3', b'"calls":4')), tc.FormatError, "counts"),
    (changed(lambda d: resealed(d, b'"tool":"echo"', b'"tool":"echo","cn4ry":"cn4ry"')), tc.FormatError, "head"),
    (rules_unknown, tc.FormatError, "rules_unknown"),
    (too_long, tc.FormatError, "line_too_long"),
    (secret_found, tc.SecretFound, None),
    (broken_rule, tc.RedactionError, "rule_failed"),
    (breaks_contract, tc.RedactionError, "redaction_breaks_contract"),
    (ambiguous, tc.CassetteMismatch, "redaction_ambiguous"),
    (not_canonical, tc.CassetteMismatch, "contract_differs"),
    (no_folder, tc.StoreError, None),
    (system_refuses("create", 28), tc.StoreError, None),
    (system_refuses("write", 28), tc.StoreError, None),
    (system_refuses("fdatasync", 5), tc.StoreError, None),
    (exists, tc.CassetteExists, None),
    (live_partial, tc.CassetteExists, None),
    (stale_partial, tc.CassetteExists, None),
    (lambda s: s.record().__enter__().__exit__(None, None, None), tc.NotPublished, "empty"),
    (open_call, tc.NotPublished, "open_call"),
    (block_raised, tc.NotPublished, "block_raised"),
    (nested, tc.NestedSelection, "nested"),
    (unused, tc.IncludeUnused, None),
    (unrecordable_argument, tc.UnrecordableValue, None),
    (unrecordable_result, tc.UnrecordableValue, None),
    (wrong_annotation, tc.UnrecordableValue, None),
    (unrecordable_in_replay, tc.CassetteMismatch, "arguments_differ"),
    (replaying(lambda s: s.echo(CANARY + "?")), tc.CassetteMismatch, "arguments_differ"),
    (replaying(nan), tc.CassetteMismatch, "arguments_differ"),
    (replaying(lambda s: s.other([CANARY])), tc.CassetteMismatch, "order_differs"),
    (replaying(lambda s: s.echo(CANARY), lambda s: s.echo(CANARY)), tc.CassetteMismatch, "exhausted"),
    (poisoned, tc.CassettePoisoned, "arguments_differ"),
    (contract, tc.ContractMismatch, "contract_differs"),
    (replaying(lambda s: s.echo(CANARY)), tc.UnconsumedCalls, None),
    (lambda s: cached(s, mode="replay-only"), tc.CacheMiss, None),
    (lambda s: [cached(s, max_age=0), cached(s, max_age=0)], tc.CacheExpired, None),
    (not_selected, tc.NotSelected, None),
    (unsigned, tc.SignatureError, "signature_missing"),
    (stale_signature, tc.SignatureError, "signature_stale"),
    (wrong_signature, tc.SignatureError, "signature_wrong"),
    (without_identity, tc.EncryptionError, "identity_missing"),
    (wrong_identity, tc.EncryptionError, "identity_wrong"),
    (forged, tc.EncryptionError, "forged"),
    (identity_that_is_gone, tc.EncryptionError, "identity_unreadable"),
    (key_file_that_is_gone, tc.SignatureError, "key_unreadable"),
    (key_file_without_a_key, tc.SignatureError, "key_unusable"),
    (forbidden, tc.NoSession, "forbidden"),
    (other_process, tc.NoSession, "other_process"),
    (same_scope, errors.AmbiguousScope, None),
    (closed, tc.SessionClosed, None),
    (cancelled, tc.ToolCancelled, None),
]


def provoked(run: Callable[[Scene], Any], scene: Scene) -> errors.CassetteError:
    try:
        run(scene)
    except tc.CassetteError as error:
        return error
    raise AssertionError


def family(error: BaseException | None) -> Iterator[BaseException]:
    """An error and all that Python keeps with it and would show."""
    while error is not None:
        yield error
        shown = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        error = shown


@pytest.mark.parametrize(("run", "cls", "reason"), SCENES)
def test_no_error_shows_an_argument_a_result_a_line_or_a_path(run, cls, reason, tmp_path, caplog, capfd):
    with caplog.at_level(logging.DEBUG):
        error = provoked(run, Scene(tmp_path))
    # A poisoned session goes on with its first mismatch, which the block's own exception carries as a note.
    assert type(error) is cls
    assert reason is None or getattr(error, "reason", None) == reason
    for member in family(error):
        if not isinstance(member, tc.CassetteError):
            continue
        said = [
            str(member),
            repr(member),
            *map(repr, member.args),
            repr(vars(member)),
            *getattr(member, "__notes__", ()),
        ]
        said += traceback.format_exception_only(member)
        for text in said:
            assert CANARY not in text
            assert str(tmp_path) not in text
    assert CANARY not in caplog.text
    assert CANARY not in "".join(capfd.readouterr())


@pytest.mark.parametrize(("run", "cls", "reason"), SCENES)
def test_no_foreign_error_is_shown_with_ours(run, cls, reason, tmp_path):
    """What the system and the decoders raise names paths and quotes data."""
    error = provoked(run, Scene(tmp_path))
    assert type(error) is cls
    for member in family(error):
        assert isinstance(member, tc.CassetteError) or CANARY not in f"{member}{member.args}", member


def test_the_catalogue_is_complete():
    left_out = {tc.CassetteError, tc.RecordedToolError}  # the base; and the tool's own words, which it is there to give
    assert {cls for _, cls, _ in SCENES} == set(CLASSES) - left_out


def test_reprs_show_no_value(tmp_path):
    scene = Scene(tmp_path)
    session = scene.record()
    with session:
        scene.echo(CANARY)
        shown = [repr(session), repr(scene.echo)]
    shown += [repr(session), repr(session.verdict), repr(tc.read_cassette(scene.file)), repr(tc.replay(scene.file))]
    shown += [repr(tc.Options()), repr(tc.Registry())]
    assert not [text for text in shown if CANARY in text]


def test_a_warning_shows_no_value(tmp_path):
    class Odd(Exception):
        pass

    def fails(value: str) -> None:
        raise Odd(value)

    scene = Scene(tmp_path)
    with pytest.warns(UserWarning, match="Odd") as said, scene.record():
        with pytest.raises(Odd):
            tc.Registry().wrap(fails, name="echo")(CANARY)
    assert CANARY not in str(said[0].message)


def test_the_watched_store_gives_the_error_that_a_store_gives():
    store = WatchedStore()
    store.fail_sync = True
    echo = tc.Registry().wrap(lambda value: value, name="echo")
    with pytest.raises(tc.StoreError) as caught, tc.record(NAME, ["echo"], store=store):
        echo(CANARY)
    assert str(caught.value) == "could not sync the partial: EIO"
