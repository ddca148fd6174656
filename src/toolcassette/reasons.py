"""The stable reasons, and how names from a file are shown: words only, no classes.

Rule: a reason never changes inside a major version; its sentence and its advice may. Nothing here ever quotes a value.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "COULD_NOT_JUDGE",
    "ENCRYPTION_REASONS",
    "EXISTS_ADVICE",
    "FORMAT_REASONS",
    "MISMATCH_REASONS",
    "NOT_PUBLISHED_REASONS",
    "NO_SESSION_REASONS",
    "REDACTION_REASONS",
    "SIGNATURE_REASONS",
    "place",
    "printable",
]

_PRINTABLE_CHARS_MAX = 120  # a name longer than a terminal line is no name
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def printable(text: str, limit: int = _PRINTABLE_CHARS_MAX) -> str:
    """``text`` with controls, bidi, zero-width and surrogate characters escaped, cut to ``limit`` characters.

    Every name that comes from a file goes through here before it reaches a terminal or a log.
    """
    if text.isascii() and text.isprintable():
        shown = text
    else:
        shown = "".join(
            c if unicodedata.category(c) not in _UNPRINTABLE else c.encode("unicode_escape").decode("ascii")
            for c in text
        )
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


FORMAT_REASONS: Mapping[str, tuple[str, str]] = {
    # reason: (what happened, what to do)
    "absent": ("there is no cassette of this name", "record it first"),
    "unreadable": ("the file cannot be read", "check its permissions"),
    "not_a_file": ("this is not a regular file", "give the path of a cassette file"),
    "empty": ("the file is empty", "a recorder stopped before its first frame: delete the file and record again"),
    "not_a_cassette": ("the first line is not a cassette header", "check the path"),
    "format_unknown": ("the cassette is of a format that this version does not read", "upgrade toolcassette"),
    "rules_unknown": ("the cassette was redacted by rules that this version does not have", "upgrade toolcassette"),
    "requires_unknown": ("the cassette needs a feature that this version does not have", "upgrade toolcassette"),
    "bom": (
        "a byte order mark stands before the first frame",
        "remove the first three bytes: sed -i '1s/^\\xef\\xbb\\xbf//' FILE",
    ),
    "crlf": ("line endings were changed to CRLF", "mark the file '-text' in .gitattributes and check it out again"),
    "final_newline_missing": ("the last newline is missing", "put it back: printf '\\n' >> FILE"),
    "lfs_pointer": ("this is a Git LFS pointer, not its content", "fetch the content: git lfs pull"),
    "conflict_markers": (
        "merge conflict markers stand in the file",
        "take one side whole: git checkout --ours FILE, or --theirs",
    ),
    "zero_filled": (
        "a run of NUL bytes stands where a frame should be",
        "a crash lost data that was not synced: restore the file or record again",
    ),
    "line_too_long": ("a line is longer than the limit", "raise line_bytes_max, or record smaller values"),
    "too_deep": ("a value is nested deeper than the limit", "record flatter values"),
    "too_many_calls": ("there are more calls than the limit", "raise calls_max, or split the recording"),
    "trailer": ("the frame does not end in prev and hash", "restore the file from version control, or record again"),
    "hash": ("the bytes of the frame do not match its hash", "restore the file from version control, or record again"),
    "link": (
        "the frame does not follow the one before it",
        "a frame was dropped, added or moved: restore the file, or record again",
    ),
    "seq": ("the frame's number is not its place", "restore the file, or record again"),
    "head": ("the head of the frame is not in the form that the format asks for", "restore the file, or record again"),
    "members": ("the frame's members do not fit together", "restore the file, or record again"),
    "bulk": ("a value in the frame is not in canonical form", "restore the file, or record again"),
    "header_missing": ("the first frame is not a header", "restore the file, or record again"),
    "header_repeated": ("a second header stands in the file", "two cassettes were joined: keep one"),
    "call_number": ("the call's number is not the next one", "restore the file, or record again"),
    "call_unknown": ("the frame belongs to a call that never started", "restore the file, or record again"),
    "call_ended": ("the frame belongs to a call that had ended", "restore the file, or record again"),
    "nested": (
        "a call lies below another recorded call",
        "record again, and select the outer or the inner tool, not both",
    ),
    "chunk_number": ("the chunk's number is not the next one", "restore the file, or record again"),
    "chunk_count": ("the result counts other chunks than the file holds", "restore the file, or record again"),
    "call_open": ("the cassette was completed while a call had no end", "restore the file, or record again"),
    "counts": ("the counts of the last frame do not fit the file", "restore the file, or record again"),
    "after_complete": (
        "something stands after the last frame",
        "two files were joined, or somebody appended: restore the file",
    ),
    "tail_missing": (
        "the last frame is missing",
        "the file was cut, or its recorder stopped: restore it or record again",
    ),
    "torn": ("the file ends inside a frame", "the file was cut, or its recorder stopped: restore it or record again"),
    "not_published": (
        "this recording was not published",
        "let its recorder end; or recover what it left (toolcassette recover), or delete it and record again",
    ),
}

# Nothing can be said of such a file, good or bad.
COULD_NOT_JUDGE = frozenset(
    {"absent", "unreadable", "not_a_file", "format_unknown", "requires_unknown", "rules_unknown"}
)


SIGNATURE_REASONS: Mapping[str, tuple[str, str, int]] = {
    # reason: (what happened, what to do, exit status)
    "signature_missing": ("there is no signature, and one is required", "have it signed: toolcassette sign FILE", 1),
    "signature_stale": (
        "the signature is of another cassette, or of this one before it changed",
        "find out which changed; then have this one signed: toolcassette sign --replace FILE",
        1,
    ),
    "signature_junk": (
        "the signature file is no signed note",
        "restore it with its line endings as they were, or delete it and have the cassette signed again",
        1,
    ),
    "signature_unknown": ("no trusted key made this signature", "have it signed by one, or trust the key that did", 1),
    "signature_wrong": (
        "a signature names a trusted key that did not make it",
        "take the line away, or have the cassette signed again",
        1,
    ),
    "signature_threshold": (
        "fewer trusted keys signed than are required",
        "have it co-signed: toolcassette sign FILE",
        1,
    ),
    "signature_unreadable": ("the signature file cannot be read", "check its permissions, and that it is a file", 2),
    "signature_full": ("no more signatures fit in the signature file", "take lines away that nobody needs", 2),
    "key_missing": (
        "a signature is required, and fewer keys are trusted than must have signed",
        "name them: --key, trusted_keys= or TOOLCASSETTE_TRUSTED_KEYS",
        2,
    ),
    "key_junk": ("what should be a verifier key is none", "copy the line that toolcassette keygen printed", 2),
    "key_unreadable": ("a key file cannot be read", "check its path and its permissions", 2),
    "key_unusable": (
        "there is no Ed25519 private key in the key file, or one with a password",
        "make one: toolcassette keygen",
        2,
    ),
    "key_unnamed": (
        "the key file does not name its key",
        "put a line before the PEM block: Name: ci.example/recorder",
        2,
    ),
    "proof_junk": ("this is no proof", "ask for it anew: toolcassette prove", 1),
    "proof_frames": ("the frames of the proof are not one call, whole", "ask for it anew: toolcassette prove", 1),
    "proof_path": ("the frames of the proof are not in the signed cassette", "ask for it anew: toolcassette prove", 1),
    "not_locked": ("the lock does not name this cassette", "look at it, then lock it: toolcassette lock", 1),
    "lock_differs": (
        "the cassette is not the one that the lock names",
        "an older or another cassette stands here: restore the one that is meant, or lock this one after a review",
        1,
    ),
    "lock_missing": (
        "there is no cassettes.lock in this folder",
        "go to the folder that it is in, or make it: toolcassette lock",
        2,
    ),
    "lock_junk": ("cassettes.lock is no lock", "restore it, or make it anew: toolcassette lock", 2),
    "lock_conflict": (
        "merge conflict markers stand in cassettes.lock, or one cassette twice",
        "choose the cassettes that are meant, then make it anew: toolcassette lock",
        2,
    ),
    "head_differs": (
        "the cassette is not the one that is expected: its head differs",
        "an older or another cassette stands here: restore the one expected, or pin this one after a review",
        1,
    ),
}


ENCRYPTION_REASONS: Mapping[str, tuple[str, str, int]] = {
    # reason: (what happened, what to do, exit status)
    "identity_missing": (
        "the cassette is encrypted, and no key is here to open it",
        "name the file of an identity: identities= or TOOLCASSETTE_IDENTITY",
        2,
    ),
    "identity_wrong": (
        "the cassette is encrypted, and none of the keys here opens it",
        "use the identity of a recipient, or have a holder make one for you: toolcassette rewrap",
        2,
    ),
    "identity_unusable": (
        "there is no X25519 private key in the identity file, or one with a password",
        "make one: toolcassette keygen --encryption",
        2,
    ),
    "identity_unreadable": ("an identity file cannot be read", "check its path and its permissions", 2),
    "recipient_junk": (
        "what should be a recipient is none",
        "copy the line that toolcassette keygen --encryption printed",
        2,
    ),
    "recipient_unreadable": ("a file of recipients cannot be read", "check its path and its permissions", 2),
    "commitment": (
        "the key that was sent to this recipient is not the one that the header commits to",
        "its maker gives recipients different texts, or somebody changed the file: restore it, or record again",
        1,
    ),
    "forged": (
        "the key is right, and the frame was not sealed by it for this place",
        "somebody changed the file and made its hashes anew: restore it, or record again",
        1,
    ),
    "salvage": (
        "the ended calls of an encrypted recording cannot be moved to a new cassette",
        "they are sealed for the places in which they stand: record again",
        2,
    ),
    "proof": (
        "a call of an encrypted cassette cannot be proven without the others",
        "give the cassette and its signature to who holds a key",
        2,
    ),
}


MISMATCH_REASONS: Mapping[str, str] = {
    "no_cassette": "there is no cassette to replay",
    "never_recorded": "no call of this tool was recorded",
    "arguments_differ": "the arguments differ from those recorded here",
    "order_differs": "another call was recorded in this place",
    "path_differs": "this call was recorded under another call path",
    "exhausted": "every recorded call of this kind was made already",
    "contract_differs": "the recorded outcome does not fit the tool's contract of today",
    "rejected_differs": "another number of calls was rejected than when recorded",
    "bypassed": "something outside answered in the place of a selected tool",
    "stream_differs": "the consumer ends the stream in another place than when recorded",
    "redaction_ambiguous": "the call could be one of several records that only their secrets tell apart",
    "stalled": "a call that must come first did not come",
}


EXISTS_ADVICE: Mapping[str, str] = {
    "cassette": "replay it, delete it, or re-record with replace=True",
    "live_partial": "another recorder is writing it: wait for that run to end",
    "signature": "it is of a cassette that is gone: delete it, or re-record with replace=True",
    "stale_partial": "its recorder is gone: recover it (toolcassette recover), delete it, or record with stale='set-aside'",
}

NOT_PUBLISHED_REASONS: Mapping[str, str] = {
    "open_call": "a call has no end; let every selected call return or raise before the session ends",
    "empty": "no selected call was made; check include, or pass allow_empty=True",
    "block_raised": "the recorded block raised; pass publish_on_error=True to keep such recordings",
    "unfinished": "its process ended before the recording was complete; record again",
    "late_child": "a selected call was made below a scope that had ended; end the tasks of a scope before it",
    "bypassed": "something outside answered in the place of a selected tool; switch that off while recording",
    "nested": "a selected tool ran inside another selected tool; select the outer or the inner one, not both",
}

REDACTION_REASONS: Mapping[str, tuple[str, str]] = {
    "rule_failed": ("a rule of redaction raised", "mend the function, or leave the rule out"),
    "too_deep": ("a text is nested too deep to be looked through", "record flatter values"),
    "redaction_breaks_contract": (
        "the redacted value does not fit the return annotation, so a replay could not hand it out",
        "give the rule a stand_in= that fits: redact=[tc.Redact(..., stand_in=...)]",
    ),
}

NO_SESSION_REASONS: Mapping[str, str] = {
    "forbidden": "it was called outside any session and live calls are forbidden; open tc.record or tc.replay around it",
    "older_thread": "it was called without a context from a thread older than the session; hand the function over as tc.bind(fn)",
    "ambiguous": "it was called without a context and two open sessions select it; hand the function over as tc.bind(fn)",
    "other_process": "another process has the session of this run; tools may be called in one process only",
}


def place(tool: str, path: Sequence[str], ordinal: int) -> str:
    """Where a call stands, in words that are safe to print."""
    under = "/" + "/".join(printable(s) for s in path) if path else "/"
    return f"tool {printable(tool)}, path {under}, ordinal {ordinal}"
