"""Where the cassette of a test lies: names made of test names.

Rule: pure. A name is kept as it is where it is safe everywhere; else it is cut to a safe subset and a digest of the
whole name keeps it apart from every other, also where upper and lower case are one (as on macOS and Windows). A name
never leaves its folder and depends on nothing but the test's own name.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

__all__ = ["SUFFIX", "safe_name"]

SUFFIX: Final = ".cassette.jsonl"

_CHARS_MAX: Final = 80  # with suffix, ``.partial`` and what is set aside: below 120 bytes
_DIGEST_HEX: Final = 12  # 48 bits: among a million names, two alike are not to be expected
_PLAIN: Final = re.compile(r"[a-z0-9_][a-z0-9_.-]*")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.]+")
_DIGESTED: Final = re.compile(rf".*-[0-9a-f]{{{_DIGEST_HEX}}}")
# Windows opens a device by these names, whatever follows the first dot.
_DEVICES: Final = frozenset(
    {"con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10))}
)


def safe_name(name: str) -> str:
    """A file or folder name of at most 80 ASCII characters for any text, without a suffix; the same in every run.

    Two different texts have two different names, also when lower-cased. A name that has a digest at its end is never
    kept as it is, so that kept names and made ones are apart.
    """
    if (
        len(name) <= _CHARS_MAX
        and _PLAIN.fullmatch(name)
        and not _DIGESTED.fullmatch(name)
        and not name.endswith(".")
        and not _is_device(name)
    ):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_HEX]
    readable = _UNSAFE.sub("-", name).strip("-.")[: _CHARS_MAX - _DIGEST_HEX - 2].rstrip("-.") or "test"
    return f"{'_' if _is_device(readable) else ''}{readable}-{digest}"


def _is_device(name: str) -> bool:
    return name.partition(".")[0].lower() in _DEVICES
