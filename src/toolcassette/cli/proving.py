"""The verbs ``prove`` and ``check-proof``: one call of a signed cassette, without the rest.

Rule: a proof holds the values of its call, and goes to stdout whole; checking one shows them only if asked.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolcassette.cli.inputs import STDIN
from toolcassette.cli.keys import key_options, trust_for
from toolcassette.cli.outlet import complain, counted, in_flags, say, say_json, shown
from toolcassette.crypto import PROOF_BYTES_MAX
from toolcassette.errors import CassetteError, printable
from toolcassette.proving import prove, proven_call

if TYPE_CHECKING:
    from toolcassette.proving import ProvenCall

__all__ = ["check_proof_verb", "prove_verb"]


@click.command("prove", short_help="prove one call of a signed cassette, without the rest")
@click.argument("file", metavar="FILE")
@click.argument("call", metavar="CALL", type=click.IntRange(min=0))
def prove_verb(file: str, call: int) -> int:
    """Print a proof that FILE, which is signed, holds the call of this number with this end

    CALL is a number as toolcassette inspect shows it. The proof holds the frames of that call, with arguments and
    result, and nothing else of the cassette; toolcassette check-proof needs neither FILE nor trust in whoever made it.
    """
    try:
        data = prove(file, call)
    except CassetteError as error:
        complain(f"{shown(file)}: {in_flags(str(error))}")
        return error.exit_status
    except IndexError:
        complain(f"{shown(file)}: there is no call {call}; toolcassette inspect shows those there are")
        return 2
    except ValueError:  # an empty name, a NUL in it
        complain(f"{shown(file)}: no such name")
        return 2
    say(data.decode("ascii").rstrip("\n"))
    return 0


@click.command("check-proof", short_help="check what toolcassette prove printed")
@click.argument("proof", metavar="PROOF")
@key_options
@click.option("--show-values", is_flag=True, help="show the arguments and the result too: they may be secret")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="how to say it")
def check_proof_verb(
    proof: str, keys: tuple[str, ...], require_signature: bool, threshold: int, show_values: bool, form: str
) -> int:
    """Check a proof: PROOF is a file that toolcassette prove printed, or - for stdin

    Keys are those of --key, else of TOOLCASSETTE_TRUSTED_KEYS; a signature is always required. What is proven is that
    they signed a cassette that holds this call with this end.
    """
    del require_signature  # there is no proof without one
    trust = trust_for(keys, required=True, threshold=threshold)
    try:
        found = proven_call(_read(proof), trust)
    except CassetteError as error:
        complain(f"{shown(proof)}: {in_flags(str(error))}")
        return error.exit_status
    if form == "json":
        say_json(_fields(found, show_values=show_values))
        return 0
    call = found.call
    say(f"{shown(proof)}: proven, signed by {', '.join(map(printable, found.signers))}")
    say(f"  cassette  {found.cassette} ({counted(found.frames, 'frame')})")
    path = "/".join(map(printable, call.path))
    say(f"  call      {found.number}: {call.boundary} {printable(call.tool)}, path /{path}")
    say(f"  outcome   {call.outcome}")
    for name, value in _values(found) if show_values else ():
        say(f"  {name.ljust(8)}  {json.dumps(value)}")
    return 0


def _read(proof: str) -> bytes:
    """Raises ``click.ClickException``."""
    try:
        if proof == STDIN:
            return sys.stdin.buffer.read(PROOF_BYTES_MAX + 1) if sys.stdin is not None else b""
        with Path(proof).open("rb") as file:
            return file.read(PROOF_BYTES_MAX + 1)
    except (OSError, ValueError):
        raise click.ClickException(f"could not read the proof {shown(proof)}") from None


def _values(found: ProvenCall) -> list[tuple[str, Any]]:
    call = found.call
    chunks = None if call.chunks is None else [json.loads(chunk) for chunk in call.chunks]
    members = (("args", call.args), ("value", call.value), ("error", call.error))
    values = [(name, json.loads(value)) for name, value in members if value is not None]
    return values if chunks is None else [*values, ("chunks", chunks)]


def _fields(found: ProvenCall, *, show_values: bool) -> dict[str, Any]:
    call = found.call
    fields: dict[str, Any] = {
        "cassette": found.cassette,
        "frames": found.frames,
        "signers": list(found.signers),
        "call": found.number,
        "tool": call.tool,
        "boundary": call.boundary,
        "path": list(call.path),
        "outcome": call.outcome,
    }
    return {**fields, "values": dict(_values(found))} if show_values else fields
