"""Run an agent once for real, keep a cassette that proves itself, and replay it for ever with zero real tool bodies.

    import toolcassette as tc

    @tc.cassette_tool
    def weather_lookup(city: str) -> dict[str, str]: ...

    with tc.record("weather.cassette.jsonl", include=["weather_lookup"]):
        agent.run("Wuhan?")

    with tc.replay("weather.cassette.jsonl"):
        agent.run("Wuhan?")  # no tool body runs; leaving raises if anything differs or is left over

Rule: this module holds the public names and nothing else, and loads what stands behind them with the first that is
used: every pytest run imports it for the plugin's sake, and most of them use nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolcassette._version import __version__

if TYPE_CHECKING:
    from toolcassette.cache import Cache, cache, cached, memory_cache
    from toolcassette.compare import Diff, diff
    from toolcassette.contracts import ToolFailure, ToolReturn
    from toolcassette.engine import (
        Call,
        Recorder,
        Replayer,
        Session,
        ToolContract,
        Verdict,
        bind,
        call_key,
        forbid_live,
        scope,
    )
    from toolcassette.errors import (
        AmbiguousScope,
        CacheExpired,
        CacheMiss,
        CassetteError,
        CassetteExists,
        CassetteMismatch,
        CassettePoisoned,
        ContractMismatch,
        EncryptionError,
        FormatError,
        IncludeUnused,
        LeftOver,
        NestedSelection,
        NoSession,
        NotPublished,
        NotSelected,
        RecordedToolError,
        RedactionError,
        SecretFound,
        SessionClosed,
        SignatureError,
        StoreError,
        ToolCancelled,
        UnconsumedCalls,
        UnrecordableValue,
    )
    from toolcassette.format import FORMAT, Cassette, RecordedCall, canonical_json, parse_cassette, write_cassette
    from toolcassette.identity import normalize_tools
    from toolcassette.listing import Listed, list_cassettes
    from toolcassette.merging import Merged, merge_cassettes
    from toolcassette.models import wrap_model
    from toolcassette.proving import ProvenCall, check_proof, prove
    from toolcassette.recover import Recovery, recover
    from toolcassette.redaction import Redact
    from toolcassette.rewrapping import rewrap
    from toolcassette.scan import SecretPlace, scan
    from toolcassette.session import Options, record, replay, session, session_from_env
    from toolcassette.signing import attest, sign
    from toolcassette.stores import BlobStore, FileStore, MemoryStore, ReadOnlyStore, Store
    from toolcassette.tools import Registry, cassette_tool, composite, register_error, register_type
    from toolcassette.trajectory import RouteCheck, assert_trajectory, follows_route
    from toolcassette.verify import Inspection, Report, inspect, read_cassette, verify

__all__ = [
    "FORMAT",
    "AmbiguousScope",
    "BlobStore",
    "Cache",
    "CacheExpired",
    "CacheMiss",
    "Call",
    "Cassette",
    "CassetteError",
    "CassetteExists",
    "CassetteMismatch",
    "CassettePoisoned",
    "ContractMismatch",
    "Diff",
    "EncryptionError",
    "FileStore",
    "FormatError",
    "IncludeUnused",
    "Inspection",
    "LeftOver",
    "Listed",
    "MemoryStore",
    "Merged",
    "NestedSelection",
    "NoSession",
    "NotPublished",
    "NotSelected",
    "Options",
    "ProvenCall",
    "ReadOnlyStore",
    "RecordedCall",
    "RecordedToolError",
    "Recorder",
    "Recovery",
    "Redact",
    "RedactionError",
    "Registry",
    "Replayer",
    "Report",
    "RouteCheck",
    "SecretFound",
    "SecretPlace",
    "Session",
    "SessionClosed",
    "SignatureError",
    "Store",
    "StoreError",
    "ToolCancelled",
    "ToolContract",
    "ToolFailure",
    "ToolReturn",
    "UnconsumedCalls",
    "UnrecordableValue",
    "Verdict",
    "__version__",
    "assert_trajectory",
    "attest",
    "bind",
    "cache",
    "cached",
    "call_key",
    "canonical_json",
    "cassette_tool",
    "check_proof",
    "composite",
    "diff",
    "follows_route",
    "forbid_live",
    "inspect",
    "list_cassettes",
    "memory_cache",
    "merge_cassettes",
    "normalize_tools",
    "parse_cassette",
    "prove",
    "read_cassette",
    "record",
    "recover",
    "register_error",
    "register_type",
    "replay",
    "rewrap",
    "scan",
    "scope",
    "session",
    "session_from_env",
    "sign",
    "verify",
    "wrap_model",
    "write_cassette",
]


if not TYPE_CHECKING:
    import importlib
    import sys
    import types

    _ROOMS = (
        "cache",
        "compare",
        "contracts",
        "engine",
        "errors",
        "format",
        "identity",
        "listing",
        "merging",
        "models",
        "proving",
        "recover",
        "redaction",
        "rewrapping",
        "scan",
        "session",
        "signing",
        "stores",
        "tools",
        "trajectory",
        "verify",
    )

    def _load() -> dict[str, object]:
        """The public names, and what stands for them. Also lets ``process`` answer for calls that have no session."""
        rooms = [importlib.import_module(f"{__name__}.{room}") for room in (*_ROOMS, "process")]
        return {name: getattr(room, name) for room in rooms for name in room.__all__ if name in __all__}

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals().update(_load())
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

    class _Facade(types.ModuleType):
        def __setattr__(self, name: str, value: object) -> None:
            # The import system binds a submodule in its package; it must not hide a public name of that spelling.
            if not (name in __all__ and isinstance(value, types.ModuleType)):
                super().__setattr__(name, value)

    sys.modules[__name__].__class__ = _Facade
    if "TOOLCASSETTE_STATUS" in os.environ:  # started by `toolcassette record` or `replay`: calls may come at any time
        _load()
