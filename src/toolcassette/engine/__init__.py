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
from toolcassette.engine.current import MODE_VARIABLE, Member, bind, forbid_live, on_unclaimed, selecting, session_for
from toolcassette.engine.journal import SYNC_POLICIES
from toolcassette.engine.live import Live
from toolcassette.engine.mismatch import differences
from toolcassette.engine.offload import off_loop
from toolcassette.engine.order import ORDERS
from toolcassette.engine.path import composite_label, pushed, scope
from toolcassette.engine.playback import COMPLETIONS
from toolcassette.engine.publication import publish_finished, read
from toolcassette.engine.recorder import Recorder, RecorderSettings
from toolcassette.engine.replayer import Replayer, ReplayerSettings
from toolcassette.engine.selection import Selection, glob_matches
from toolcassette.engine.stream_replaying import ReplayedFeed
from toolcassette.engine.streams import CONTEXTS, shape_of
from toolcassette.engine.verdict import Verdict

__all__ = [
    "COMPLETIONS",
    "CONTEXTS",
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
    "publish_finished",
    "pushed",
    "read",
    "scope",
    "selecting",
    "session_for",
    "shape_of",
]
