"""The verbs ``sign`` and ``attest``.

Rule: all inputs are signed that can be, also after one that cannot; of their exit statuses 2 beats 1 beats 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from toolcassette.cli.inputs import STDIN, expand
from toolcassette.cli.keys import signing_key
from toolcassette.cli.outlet import complain, in_flags, say, shown
from toolcassette.crypto import read_signer, sign
from toolcassette.errors import CassetteError, printable
from toolcassette.signing import attest

if TYPE_CHECKING:
    from toolcassette.cli.inputs import Input
    from toolcassette.crypto import Signer

__all__ = ["attest_verb", "sign_verb"]

_SAID: Final = {
    "signed": "signed by {}",
    "co-signed": "signed by {} too",
    "unchanged": "{} had signed it",
    "replaced": "signed by {}, in the place of a signature of other content",
}


@click.command("sign", short_help="sign cassettes")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@signing_key
@click.option("--replace", is_flag=True, help="let go of a signature of other content")
def sign_verb(paths: tuple[str, ...], key: str, replace: bool) -> int:
    """Sign cassettes: each PATH, a file or a folder, gets a signature in PATH.sig

    Only a whole cassette is signed, after every value was looked at; the cassette itself does not change. Where others
    have signed it, a line is added. To see whether a signature holds: toolcassette verify --key.
    """
    if STDIN in paths:
        raise click.UsageError("sign works on files, not on stdin")
    signer = read_signer(key)
    return max(_answer(item, signer, replace=replace) for item in expand(paths))


def _answer(item: Input, signer: Signer, *, replace: bool) -> int:
    try:
        done = sign(item.store, item.path, signer, replace=replace)
    except CassetteError as error:
        complain(f"{shown(item.path)}: {in_flags(str(error))}")
        return error.exit_status
    except ValueError:  # a NUL in a name
        complain(f"{shown(item.path)}: no such name")
        return 2
    say(f"{shown(item.path)}: {_SAID[done].format(printable(signer.verifier.name))}")
    return 0


@click.command("attest", short_help="state what a cassette is, for supply-chain tools")
@click.argument("file", metavar="FILE")
@signing_key
def attest_verb(file: str, key: str) -> int:
    """Print a DSSE envelope with an in-toto statement on FILE: its SHA-256, id, head, and numbers of frames and calls

    No argument and no result is in it. FILE must be a whole cassette, and every value of it is looked at. Such
    envelopes are verified by the tools that read them.
    """
    try:
        data = attest(file, key)
    except CassetteError as error:
        complain(f"{shown(file)}: {in_flags(str(error))}")
        return error.exit_status
    except ValueError:  # an empty name, a NUL in it
        complain(f"{shown(file)}: no such name")
        return 2
    say(data.decode("ascii").rstrip("\n"))
    return 0
