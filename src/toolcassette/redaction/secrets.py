"""The secrets of one session, as far as they are known: each has a number, and some are looked for everywhere.

Theory. A rule finds a secret in one place. Whether the same text is a secret *wherever* it stands is another question:
``postgres`` may be a password here and a word there. So a secret is looked for everywhere only if its looks prove it (a
shape), if it was declared, or if it is so long and so random that no other text would be the same by chance, and is no
name in the cassette itself.

Rule: equal texts have one number in one cassette. What is known only grows.
"""

from __future__ import annotations

import collections
import math
import os
import re
from typing import TYPE_CHECKING, Final

from toolcassette.redaction.names import secret_name
from toolcassette.redaction.standins import Ref
from toolcassette.redaction.views import RUN_MIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["DECLARED_MIN", "Secrets", "from_environment", "is_random"]

DECLARED_MIN: Final = 4  # characters; a shorter text stands everywhere
_EVERYWHERE_MIN: Final = 12
_DIFFERENT_MIN: Final = 6
_BITS_MIN: Final = 2.7  # of entropy a character; English words have about 3, but see _kinds
_PASSPHRASE_MIN: Final = 24  # characters; so long, even small letters alone are no name of anything
_DIRECTORIES: Final = frozenset({"PWD", "OLDPWD"})
_FRAGMENT: Final = re.compile(rb"[A-Za-z0-9]{4,}")


def is_random(value: str) -> bool:
    """Whether a text is so long and so varied that it would not turn up twice by chance."""
    if len(value) < _EVERYWHERE_MIN:
        return False
    counts = collections.Counter(value)
    if len(counts) < _DIFFERENT_MIN:
        return False
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return bits >= _BITS_MIN and (_kinds(value) or len(value) >= _PASSPHRASE_MIN)


def _kinds(value: str) -> bool:
    """Letters of both cases past the first one, or letters and digits together: no plain word, no plain number."""
    digits = any(c.isdigit() for c in value)
    letters = any(c.isalpha() for c in value)
    return (digits and letters) or (any(c.isupper() for c in value[1:]) and any(c.islower() for c in value))


def from_environment(environ: Mapping[str, str] | None = None) -> list[str]:
    """The values of the environment variables whose names are those of secrets; the short and plain ones are left.

    So are paths: a shell keeps its working directory in ``PWD``, and a name like ``..._CREDENTIALS`` is often a file's.
    """
    env = os.environ if environ is None else environ
    return [
        value
        for name, value in env.items()
        if name not in _DIRECTORIES and secret_name(name) is not None and is_random(value) and not _is_path(value)
    ]


def _is_path(value: str) -> bool:
    return os.path.isabs(value) and os.path.lexists(value)  # noqa: PTH117 - a text that may be none


class Secrets:
    """Numbers by text, and what is looked for everywhere. ``first``: the number of the first secret."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._refs: dict[str, Ref] = {}
        self._everywhere: dict[str, str] = {}  # text -> the rule that made it known
        self._pattern: re.Pattern[str] | None = None
        self._run_min = RUN_MIN
        self.needles: tuple[bytes, ...] | None = ()  # None: only a full look can tell
        self.names: set[str] = set()  # of tools and members: no secret, however random
        self.given: dict[int, Ref] = {}  # stand-ins that were handed out, which a program may pass on
        self.all_given = False
        self.used: set[str] = set()  # ids of the rules that matched

    @property
    def run_min(self) -> int:
        """Characters of the shortest base64 that could hold what is looked for everywhere."""
        return self._run_min

    @property
    def known(self) -> int:
        """How many are looked for everywhere."""
        return len(self._everywhere)

    def is_given(self, n: int) -> bool:
        """True if a stand-in of this number is one: it was handed out, or what is looked through was redacted."""
        return self.all_given or n in self.given

    def ref(self, value: str, rule: str) -> Ref:
        """The number of a text, a new one if it has none; the rule that found it first."""
        found = self._refs.get(value)
        if found is None:
            found = self._refs[value] = Ref(self._first + len(self._refs), rule)
        return found

    def everywhere(self, value: str, rule: str, *, surely: bool = False) -> Ref:
        """As ``ref``; from now on the text is looked for everywhere, ``surely`` or if it is random enough."""
        found = self.ref(value, rule)
        self.expect(value, rule, surely=surely)
        return found

    def expect(self, value: str, rule: str, *, surely: bool = False) -> None:
        """As ``everywhere``, for a text that was not seen yet: it gets its number when it is."""
        if value not in self._everywhere and (surely or (value not in self.names and is_random(value))):
            self._everywhere[value] = rule
            self._pattern = re.compile("|".join(map(re.escape, sorted(self._everywhere, key=len, reverse=True))))
            self.needles = _needles(self._everywhere)
            self._run_min = min(self._run_min, -(-4 * len(value.encode("utf-8", "surrogatepass")) // 3))

    def found_in(self, text: str) -> list[tuple[int, int, Ref]]:
        """Where in a text known secrets stand."""
        if self._pattern is None:
            return []
        found = self._pattern.finditer(text)
        return [(m.start(), m.end(), self.ref(m.group(), self._everywhere[m.group()])) for m in found]

    def begins_in(self, text: str, within: int) -> int:
        """Where in the last ``within`` characters the longest beginning of a known secret stands; else the length."""
        longest = max(map(len, self._everywhere), default=0)
        for at in range(max(0, len(text) - min(longest, within)), len(text)):
            tail = text[at:]
            if any(value.startswith(tail) for value in self._everywhere):
                return at
        return len(text)


def _needles(values: Iterable[str]) -> tuple[bytes, ...] | None:
    """A plain piece of each text, which stands in canonical JSON and in most encodings as it is."""
    needles = []
    for value in values:
        pieces = _FRAGMENT.findall(value.encode("utf-8", "surrogatepass"))
        if not pieces:
            return None
        needles.append(max(pieces, key=len))
    return tuple(needles)
