"""The verb ``rewrap``: a cassette for other recipients.

Rule: the old file stays as it is, and nothing is overwritten.
"""

from __future__ import annotations

import click

from toolcassette.cli.outlet import complain, in_flags, shown
from toolcassette.errors import CassetteError, FormatError
from toolcassette.format import state_of
from toolcassette.rewrapping import rewrap

__all__ = ["rewrap_verb"]


@click.command("rewrap", short_help="encrypt a cassette for other recipients")
@click.argument("file", metavar="IN")
@click.argument("into", metavar="OUT")
@click.option(
    "--recipient", "recipients", metavar="KEY", multiple=True, required=True, help="a recipient, or a file; repeat it"
)
@click.option(
    "--identity", "identities", metavar="FILE", multiple=True, help="opens IN; else those of TOOLCASSETTE_IDENTITY"
)
def rewrap_verb(file: str, into: str, recipients: tuple[str, ...], identities: tuple[str, ...]) -> int:
    """Encrypt the calls of the cassette IN, encrypted or not, for these recipients, in the new cassette OUT

    OUT has an id, a key and hashes of its own, and its header names the one that it was made of: have it signed anew.
    Who could open IN still can; to shut somebody out, delete it, and record again what must stay secret.
    """
    try:
        rewrap(file, into, recipients, identities=identities)
    except FormatError as error:
        complain(f"{shown(file)}: {state_of(error.reason)}: {error}")
        return error.exit_status
    except CassetteError as error:
        complain(f"{shown(file)}: {in_flags(str(error))}")
        return error.exit_status
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    complain(f"made {shown(into)}; have it signed: toolcassette sign")
    return 0
