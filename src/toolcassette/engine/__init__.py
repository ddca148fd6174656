"""What records and replays: the front door of the first floor. It knows no framework.

An adapter needs four lines, the same for every mode, with ``async with`` where its tools are coroutines:

    with session.begin(call, contract) as pending:
        if pending.runs_body:
            pending.keep(body())           # an exception that leaves the block is kept as the outcome
    return pending.outcome()               # decoded; or raises

``begin`` touches nothing. Entering takes the call's place, before anything is waited for, and then waits until that is
durable. Leaving waits until the result is.
"""

from __future__ import annotations

from toolcassette.engine.base import Session
from toolcassette.engine.call import Call, Pending, ToolContract, call_key
from toolcassette.engine.current import (
    EFFECTS,
    MODE_VARIABLE,
    Member,
    bind,
    forbid_live,
    on_unclaimed,
    selecting,
    session_for,
)
from toolcassette.engine.journal import SYNC_POLICIES
from toolcassette.engine.live import Live
from toolcassette.engine.mismatch import differences
from toolcassette.engine.offload import off_loop
from toolcassette.engine.order import ORDERS
from toolcassette.engine.path import composite_label, pushed, scope, scope_label
from toolcassette.engine.planted import planted as planted_secrets
from toolcassette.engine.playback import COMPLETIONS
from toolcassette.engine.proof import sign_published, stale_note
from toolcassette.engine.publication import publish_finished, read
from toolcassette.engine.recorder import Recorder
from toolcassette.engine.replayer import Replayer
from toolcassette.engine.searching import Search
from toolcassette.engine.selection import Selection, glob_matches
from toolcassette.engine.settings import RecorderSettings, ReplayerSettings
from toolcassette.engine.stream_replaying import ReplayedFeed
from toolcassette.engine.streams import CONTEXTS, shape_of
from toolcassette.engine.verdict import Verdict

__all__ = [
    "COMPLETIONS",
    "CONTEXTS",
    "EFFECTS",
    "MODE_VARIABLE",
    "ORDERS",
    "SYNC_POLICIES",
    "Call",
    "Live",
    "Member",
    "Pending",
    "Recorder",
    "RecorderSettings",
    "ReplayedFeed",
    "Replayer",
    "ReplayerSettings",
    "Search",
    "Selection",
    "Session",
    "ToolContract",
    "Verdict",
    "bind",
    "call_key",
    "composite_label",
    "differences",
    "forbid_live",
    "glob_matches",
    "off_loop",
    "on_unclaimed",
    "planted_secrets",
    "publish_finished",
    "pushed",
    "read",
    "scope",
    "scope_label",
    "selecting",
    "session_for",
    "shape_of",
    "sign_published",
    "stale_note",
]
