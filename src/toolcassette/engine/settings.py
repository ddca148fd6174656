"""What a session does besides its work; ``tc.Options`` has the words, and validates them.

Rule: plain data, made in one place.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from toolcassette.crypto import Trust, sealing_for
from toolcassette.format import CALLS_MAX, LINE_BYTES_MAX, Writer
from toolcassette.redaction import OFF, Rules

if TYPE_CHECKING:
    from toolcassette.crypto import Recipient, Signer

__all__ = ["RecorderSettings", "ReplayerSettings"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecorderSettings:
    """What a recorder does besides recording; ``tc.Options`` has the words. ``publish`` False leaves that, and signing,
    to a parent process. ``signer`` None: nothing is signed. Without ``recipients`` nothing is encrypted.
    """

    producer: str
    order: str = "strict"
    sync: str = "frame"
    replace: bool = False
    set_aside: bool = False
    publish: bool = True
    publish_on_error: bool = False
    allow_empty: bool = False
    strict_include: bool = False
    line_bytes_max: int = LINE_BYTES_MAX
    calls_max: int = CALLS_MAX
    signer: Signer | None = None
    recipients: tuple[Recipient, ...] = ()
    rules: Rules = OFF
    secrets: tuple[str, ...] = dataclasses.field(default=(), repr=False)

    def writer(self) -> Writer:
        """What writes the frames."""
        return Writer(
            line_bytes_max=self.line_bytes_max, calls_max=self.calls_max, sealing=sealing_for(self.recipients)
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplayerSettings:
    """What a replayer does besides replaying; ``tc.Options`` has the words. ``stall_after`` in seconds.

    ``trust``: whom the cassette's signature must be from. ``identities``: files of keys that open an encrypted one;
    without any, those of the environment.
    """

    order: str | None = None  # None: as it was recorded
    completion: str = "recorded"
    allow_unconsumed: bool = False
    strict_include: bool = False
    cancelled: str = "wait"
    stall_after: float = 5.0
    calls_max: int = CALLS_MAX
    trust: Trust = dataclasses.field(default_factory=Trust)
    expect_head: str | None = None
    identities: tuple[str, ...] = ()
    rules: Rules = OFF  # the user's own; the version of the default set is the cassette's
    secrets: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    on_secret: str = "refuse"  # noqa: S105 - no password, a policy
