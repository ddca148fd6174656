"""Where a run and its cassette part, and in which words: reasons, JSON paths, fingerprints.

Rule: never a value. A report names the tool, the call path, the ordinal, the JSON paths at which the nearest record
differs, and fingerprints: keyed digests under a key that is random per session and kept nowhere, good for telling equal
from different within one report and for nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolcassette.errors import CassetteMismatch
from toolcassette.format import TAG, decode_tree, json_path
from toolcassette.redaction import holes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolcassette.engine.call import Call
    from toolcassette.engine.likeness import Likeness
    from toolcassette.engine.order import Order
    from toolcassette.format import Cassette

__all__ = ["differences", "explain", "fingerprint"]

_PATHS_MAX: Final = 8  # a report that lists more differences is not read
_FINGERPRINT_HEX: Final = 16


def fingerprint(key: bytes, tool: str, args: bytes) -> str:
    """16 hex digits that stand for some arguments within one session (HMAC-SHA256)."""
    text = tool.encode("utf-8", "replace") + b"\0" + args
    return hmac.new(key, text, hashlib.sha256).hexdigest()[:_FINGERPRINT_HEX]


def differences(live: Any, recorded: Any) -> Iterator[tuple[str, str]]:
    """JSON path and kind (``changed``, ``added``, ``removed``) of each place at which two trees differ."""
    yield from _differences(live, recorded, ())


def _differences(live: Any, recorded: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str, str]]:
    if type(live) is dict and type(recorded) is dict and TAG not in live and TAG not in recorded:
        for key in live.keys() | recorded.keys():
            if key not in recorded:
                yield json_path((*path, key)), "added"
            elif key not in live:
                yield json_path((*path, key)), "removed"
            else:
                yield from _differences(live[key], recorded[key], (*path, key))
    elif type(live) is list and type(recorded) is list and len(live) == len(recorded):
        for index, (a, b) in enumerate(zip(live, recorded, strict=True)):
            yield from _differences(a, b, (*path, index))
    elif not _equal(live, recorded):
        yield json_path(path), "changed"


def _equal(a: Any, b: Any) -> bool:
    """Equality that keeps 1, 1.0 and True apart, and 0.0 and -0.0."""
    return type(a) is type(b) and (a == b if not isinstance(a, (dict, list, float)) else repr(a) == repr(b))


class _Records(NamedTuple):
    """The recorded calls that could be meant, by how near they come; call numbers in start order."""

    same: list[int]  # this path, tool and arguments
    tool: list[int]  # this path and tool
    elsewhere: list[int]  # this tool under another path


def _records(cassette: Cassette, call: Call, likeness: Likeness) -> _Records:
    found = _Records([], [], [])
    for path, numbers in cassette.paths.items():
        for number in numbers:
            head, _ = cassette.place(number)
            if head.tool != call.tool or head.boundary != call.boundary:
                continue
            if path != call.path:
                found.elsewhere.append(number)
                continue
            found.tool.append(number)
            if likeness.same(number, call):
                found.same.append(number)
    return found


def explain(cassette: Cassette, call: Call, order: Order, likeness: Likeness, key: bytes) -> CassetteMismatch:
    """The mismatch of a call that has no record to take, where ``order`` tells which were taken already.

    Where several reasons fit, the order is: exhausted, order, arguments, path, never recorded.
    """
    records = _records(cassette, call, likeness)
    done, ordinal = order.consumed, order.cursor(call.path)
    print_live = fingerprint(key, call.tool, call.args)

    def mismatch(reason: str, *, nearest: int | None = None, advice: str) -> CassetteMismatch:
        rows: list[tuple[str, str]] = []
        expected = None
        if nearest is not None:
            args = likeness.template(nearest)
            expected = fingerprint(key, call.tool, args)
            rows = sorted(differences(decode_tree(call.args, sort=True), decode_tree(args, sort=True)))
            if not rows:  # equal but for which secret is which
                rows = [(path, "changed") for path in holes(args)]
        return CassetteMismatch(
            reason,
            tool=call.tool,
            path=call.path,
            ordinal=ordinal,
            differs=[path for path, _ in rows[:_PATHS_MAX]],
            fingerprint=print_live,
            expected=expected,
            advice="; ".join(filter(None, [_kinds(rows), advice])),
        )

    if records.same and all(done[number] for number in records.same):
        times = f"recorded {len(records.same)} time{'s' if len(records.same) != 1 else ''}"
        return mismatch("exhausted", advice=f"{times}; the program makes more calls than when recorded: record again")
    if records.same:
        return mismatch(
            "order_differs",
            advice="make the calls as recorded, or record again; where they overlap, record with order='causal'",
        )
    if records.tool:
        left = [number for number in records.tool if not done[number]]
        nearest = (left or records.tool)[0]
        advice = "pass what was recorded, or record again"
        return mismatch("arguments_differ", nearest=nearest, advice="; ".join([*_of_rules(likeness, nearest), advice]))
    if records.elsewhere:
        return mismatch("path_differs", advice="call it from where it was called when recorded, or record again")
    return mismatch("never_recorded", advice="record again with this tool included")


def _of_rules(likeness: Likeness, number: int) -> list[str]:
    """Words for what redaction has to do with it."""
    rules = likeness.rules_of(number)
    words = [f"secrets in it were replaced by {', '.join(rules)}, and compare up to renaming"] if rules else []
    if likeness.missing:
        words.append(f"it was recorded under {', '.join(likeness.missing)} too, which this replay does not have")
    if likeness.changed:
        words.append(f"since it was recorded, the rules {', '.join(likeness.changed)} have changed")
    return words


def _kinds(rows: Sequence[tuple[str, str]]) -> str:
    """Words for parameters that one side only has; a new parameter at its default is such a case."""
    added = [path for path, kind in rows if kind == "added"]
    removed = [path for path, kind in rows if kind == "removed"]
    words = []
    if added:
        words.append(f"{', '.join(added[:_PATHS_MAX])} was not there when this was recorded")
    if removed:
        words.append(f"{', '.join(removed[:_PATHS_MAX])} was recorded and is not passed any more")
    return "; ".join(words)
