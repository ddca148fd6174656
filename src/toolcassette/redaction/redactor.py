"""The redactor of one session: canonical bytes in, canonical bytes without secrets out.

Theory. A value is a tree of names and texts. A *name* rule replaces the text that stands under it, whole, there and
nowhere else. A *shape*, a declared value, or a text that a name rule found and that is random enough, is replaced
wherever it stands: inside longer texts, in names, and through encodings (``views``). Recording, the numbers begin at
1; replaying, at a number that no cassette holds, and ``matching`` tells which of them stands for which.

Most values hold nothing, and a look at their bytes proves it: without one of the needles no rule can match.

Rule: the same bytes and the same knowledge give the same result. What is not replaced stays as it is, byte for byte.
"""

from __future__ import annotations

import base64
import threading
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from toolcassette.errors import CassetteError, RedactionError
from toolcassette.format import TAG, decode_tree, encode_tree, json_path
from toolcassette.redaction.finding import Finding, Look
from toolcassette.redaction.names import NAME_SIGNS
from toolcassette.redaction.secrets import Secrets
from toolcassette.redaction.standins import MARK, STANDIN, Ref, escaped, is_redacted, tag
from toolcassette.redaction.views import applied, bytes_of, edits, has_run, merged, name_of_item, spelled_name, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolcassette.redaction.rules import Rule, Rules
    from toolcassette.redaction.views import Edit

__all__ = ["REPLAYED_FIRST", "EditsAt", "Redactor"]

_T = TypeVar("_T")
EditsAt: TypeAlias = "Callable[[tuple[str | int, ...]], Sequence[Edit]]"

REPLAYED_FIRST: Final = 10**15  # the number of the first secret of a replay; no cassette has so many

# What a secret without a name may be known by, or hide behind; and what shows a name inside a text, if one is there.
_SIGNS: Final = (b"%", b"\\u", b"\\x", b'{"$tc":"byte', b"://", b"-----BEGIN", MARK.encode())
_NAMED_SIGNS: Final = (b"=", b'\\"', b"earer", b"EARER", b"ookie:", b"-key:", b"-token:", b"-secret:", b"orization:")
_TEXT_TAGS: Final = frozenset({"str", "path", "uuid", "datetime", "date", "time"})  # whose v is a text
_ITEM_TAGS: Final = frozenset({"set", "frozenset", "map"})  # whose order is that of their bytes


class Redactor:
    """What one session knows, and what it replaces. Safe to share between threads."""

    def __init__(
        self, rules: Rules, *, declared: Iterable[str] = (), environment: Iterable[str] = (), first: int = 1
    ) -> None:
        self.rules = rules
        self.secrets = Secrets(first)
        self._lock = threading.RLock()
        for rule, values in (("declared", declared), ("env", environment)):
            for value in values:
                self.secrets.expect(value, rule, surely=True)
        self.starts_with = self.secrets.known  # what is known before the first call
        self._always = any(rule.kind != "name" for rule in rules.own)
        self._own_needles = tuple(rule.what[-1].encode() for rule in rules.own if rule.kind == "name")

    @property
    def known(self) -> int:
        """How many secrets are looked for everywhere; it grows."""
        return self.secrets.known

    def names_are(self, names: Iterable[str]) -> None:
        """Names of tools and parameters: no secrets, however random they look."""
        self.secrets.names.update(names)

    def redacted(self, data: bytes, *, sort: bool = False, own: Sequence[Rule] = ()) -> bytes:
        """Canonical bytes without secrets; the very same bytes where there is none. ``own``: the tool's rules.

        Raises ``RedactionError`` where a rule of the user's fails.
        """
        if not own and self.is_clean(data):
            return data
        with self._lock:
            tree = decode_tree(data, sort=sort)
            if sort and type(tree) is dict:
                self.names_are(tree)  # arguments, by the names of their parameters
            again = self._settled(lambda: _Walk(self, own, texts=bool(own) or self._texts_matter(data)).tree(tree))
            return data if again is tree else encode_tree(again, sort=sort)

    def redacted_item(self, data: bytes, edits_at: EditsAt, *, own: Sequence[Rule] = ()) -> bytes:
        """As ``redacted``, for an item of a stream. ``edits_at``: what else is to be replaced in the text at a path."""
        with self._lock:
            tree = decode_tree(data)
            again = self._settled(lambda: _Walk(self, own, edits_at=edits_at).tree(tree))
            return data if again is tree else encode_tree(again, sort=False)

    def has_text_rules(self, own: Sequence[Rule]) -> bool:
        """True if rules of the user's look into texts."""
        return any(rule.kind in ("pattern", "finder", "directory") for rule in (*own, *self.rules.own))

    def is_clean(self, data: bytes) -> bool:
        """True if bytes surely hold nothing to replace: no needle of any rule stands in them."""
        if self._may_hide(data):
            return False
        low = data.lower()
        return NAME_SIGNS.search(low) is None and not any(needle in low for needle in self._own_needles)

    def _may_hide(self, data: bytes) -> bool:
        """False if bytes surely hold a secret only where a name tells it, in plain letters."""
        needles = self.secrets.needles
        if self._always or needles is None or has_run(data, self.secrets.run_min):
            return True
        for sign in _SIGNS:
            if sign in data:
                return True
        return any(needle in data for needle in needles)

    def _texts_matter(self, data: bytes) -> bool:
        """False if bytes that hold a name surely hold a secret only right under it: other texts need no look."""
        return self._may_hide(data) or any(sign in data for sign in _NAMED_SIGNS)

    def findings(self, data: bytes, *, sort: bool = False, own: Sequence[Rule] = ()) -> list[Finding]:
        """Where bytes hold a secret: JSON path and rule, in the order of the bytes."""
        if not own and self.is_clean(data):
            return []
        with self._lock:
            tree = decode_tree(data, sort=sort)
            return self._settled(lambda: self._found(tree, own))

    def _found(self, tree: Any, own: Sequence[Rule]) -> list[Finding]:
        walk = _Walk(self, own)
        walk.tree(tree)
        return walk.found

    def _settled(self, look: Callable[[], _T]) -> _T:
        """What a look gives that learns no more: what it learns at the end may stand at the beginning as well."""
        while True:
            known = self.known
            found = look()
            if known == self.known:
                return found

    def review(self) -> None:
        """From now on look at what was redacted already: stand-ins are what they are, and nothing is escaped twice."""
        self.secrets.all_given = True

    def text_edits(self, value: str, own: Sequence[Rule] = ()) -> list[Edit]:
        """What is to be replaced in a text alone."""
        with self._lock:
            return self._settled(lambda: edits(value, Look(self.rules, self.secrets, own)))

    def without_secrets(self, value: str) -> str:
        """A text for all to see, such as a JSON path, whose names come from a file and may be secrets themselves."""
        return applied(value, self.text_edits(value))

    def text_rules(self, value: str) -> list[str]:
        """The rules that find something in a text alone."""
        with self._lock:
            self.text_edits(value)
            look = Look(self.rules, self.secrets)
            edits(value, look)
            return [finding.rule for finding in look.taken("$")]


class _Walk:
    """One value on its way through the rules."""

    def __init__(
        self, redactor: Redactor, own: Sequence[Rule], *, texts: bool = True, edits_at: EditsAt | None = None
    ) -> None:
        self._rules = redactor.rules
        self._escapes = not redactor.secrets.all_given
        self._edits_at = edits_at
        self._texts = texts  # False: only what stands under a name can be a secret
        self._secrets = redactor.secrets
        self._look = Look(redactor.rules, redactor.secrets, own)
        self._paths = [rule for rule in (*own, *redactor.rules.own) if rule.kind == "path"]
        self.found: list[Finding] = []

    def tree(self, node: Any, name: str = "", path: tuple[str | int, ...] = ()) -> Any:
        """The tree without secrets; the same object where it holds none."""
        if self._paths and path:
            for rule in self._paths:
                if _lies_at(rule.what, path) and not is_redacted(node) and not _is_nothing(node):
                    return self._whole_by_path(rule, node, path)
        kind = type(node)
        if kind is str:
            return self._text(node, name, path) if name or self._texts else node
        if kind is dict:
            return self._tagged(node, name, path) if TAG in node else self._members(node, path)
        if kind is list:
            return self._items(node, name, path)
        return node

    def _members(self, node: dict[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
        if path and path[-1] == "properties":
            self._secrets.names.update(node)  # of a schema
        # A piece of text with its likelihood, as models report it.
        pieces = "token" in node and ("logprob" in node or "logprobs" in node or "token_id" in node)
        spelled = spelled_name(node)
        again: dict[str, Any] = {}
        same = True
        for key, value in node.items():
            under = "" if pieces and key == "token" else spelled if spelled and key == "value" else key
            if type(value) is str and not self._texts and not self._look.is_name(under):
                new: Any = value
            else:
                new = self.tree(value, under, (*path, key))
            new_key = self.inside(key, "", (*path, key)) if self._texts else key
            same = same and new is value and new_key == key
            again[new_key] = new
        return node if same else again

    def _items(self, node: list[Any], name: str, path: tuple[str | int, ...]) -> list[Any]:
        """Items; a name holds for each text of them, and the first of two texts is the name of the second."""
        again = [self.tree(item, name_of_item(node, index, name), (*path, index)) for index, item in enumerate(node)]
        return node if all(new is item for new, item in zip(again, node, strict=True)) else again

    def _tagged(self, node: dict[str, Any], name: str, path: tuple[str | int, ...]) -> Any:
        kind, inner = node[TAG], node.get("v")
        if kind == "redacted":
            return node
        if kind in ("bytes", "bytearray") and type(inner) is str:
            return self._bytes(node, name, path)
        if kind in _TEXT_TAGS and type(inner) is str:
            again: Any = self.inside(inner, "" if kind != "str" else name, path)
        elif kind in _ITEM_TAGS and type(inner) is list:
            again = self._items(inner, name, path) if kind != "map" else self._map(inner, path)
            if again is not inner:
                again = sorted(again, key=lambda item: encode_tree(item, sort=True)) if kind != "map" else again
        else:
            again = self.tree(inner, name, path)
        return node if again is inner or again == inner else node | {"v": again}

    def _map(self, pairs: list[Any], path: tuple[str | int, ...]) -> list[Any]:
        again = [
            [self.tree(pair[0], "", path), self.tree(pair[1], pair[0] if type(pair[0]) is str else "", path)]
            for pair in pairs
        ]
        return pairs if again == pairs else again

    def _bytes(self, node: dict[str, Any], name: str, path: tuple[str | int, ...]) -> Any:
        plain = text_of(base64.b64decode(node["v"]))
        given = self._given(plain) if node[TAG] == "bytes" else None
        if given is not None:
            return tag(given, of="bytes", handed=self._look.handed(given.rule))
        found = self._edits(plain, name, path)
        if not found:
            return node
        whole = self._whole(plain, found)
        if whole is not None and node[TAG] == "bytes":
            return tag(whole, of="bytes", handed=self._look.handed(whole.rule))
        return node | {"v": base64.b64encode(bytes_of(applied(plain, found))).decode("ascii")}

    def _text(self, value: str, name: str, path: tuple[str | int, ...]) -> Any:
        given = self._given(value)
        if given is not None:
            return tag(given, handed=self._look.handed(given.rule))
        found = self._edits(value, name, path)
        if found:
            whole = self._whole(value, found)
            if whole is not None:
                return tag(whole, handed=self._look.handed(whole.rule))
        return self._escaped(value, found)

    def _given(self, value: str) -> Ref | None:
        """Whom a text stands for that was handed out, and is passed on whole."""
        match = STANDIN.fullmatch(value) if self._escapes else None
        if match is None or not self._secrets.is_given(int(match.group(2))):
            return None
        return Ref(int(match.group(2)), match.group(1))

    def inside(self, value: str, name: str, path: tuple[str | int, ...]) -> str:
        """A text that has to stay one."""
        return self._escaped(value, self._edits(value, name, path, alone=True))

    def _edits(self, value: str, name: str, path: tuple[str | int, ...], *, alone: bool = False) -> Sequence[Edit]:
        self._look.at = lambda: json_path(path)
        found = self._look.named(name, value) if name else None
        joined = [] if found is not None or alone or self._edits_at is None else self._edits_at(path)
        try:
            found = edits(value, self._look) if found is None else found
        except CassetteError:
            raise
        except RecursionError:
            raise RedactionError("too_deep", rule=self._rules.version or "", json_path=json_path(path)) from None
        self.found += self._look.taken(json_path(path)) if found or self._look.has_taken else ()
        return merged(joined, found) if joined else found

    def _whole(self, value: str, found: Sequence[Edit]) -> Ref | None:
        if len(found) != 1 or (found[0].start, found[0].end) != (0, len(value)):
            return None
        match = STANDIN.fullmatch(found[0].new)
        return Ref(int(match.group(2)), match.group(1)) if match else None

    def _escaped(self, value: str, found: Sequence[Edit]) -> str:
        """The text with edits done, and what merely looks like a stand-in told from them."""
        if "⟦" not in value or not self._escapes:
            return applied(value, found) if found else value
        parts: list[str] = []
        at = 0
        for start, end, new in found:
            parts += self._escape(value[at:start]), new
            at = end
        return "".join((*parts, self._escape(value[at:])))

    def _escape(self, value: str) -> str:
        if not self._secrets.given:
            return escaped(value)
        parts: list[str] = []
        at = 0
        for match in STANDIN.finditer(value):
            if self._secrets.is_given(int(match.group(2))):
                parts += escaped(value[at : match.start()]), match.group()
                at = match.end()
        return "".join((*parts, escaped(value[at:])))

    def _whole_by_path(self, rule: Rule, node: Any, path: tuple[str | int, ...]) -> Any:
        """A value that a path names, whatever it is."""
        self._secrets.used.add(rule.id)
        spelled = node if type(node) is str else encode_tree(node, sort=True).decode("utf-8")
        ref = self._secrets.ref(spelled, rule.id)
        if rule.secret and type(node) is str:
            self._secrets.everywhere(spelled, rule.id)
        self.found.append(Finding(rule.id, json_path(path)))
        return tag(ref, of="bytes" if type(node) is dict and node.get(TAG) == "bytes" else "str", handed=rule.handed)


def _is_nothing(node: Any) -> bool:
    return node is None or node == ""


def _lies_at(steps: tuple[str | int | None, ...], path: tuple[str | int, ...]) -> bool:
    return len(steps) == len(path) and all(a is None or a == b for a, b in zip(steps, path, strict=True))
