"""Keys on the command line: the verb ``keygen``, and whom the verbs that verify trust.

Rule: what the operator says at the prompt goes before the environment, and that before a policy in a revision; a
signature that any of them requires is required.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from toolcassette.cli.outlet import complain, say, shown
from toolcassette.cli.policy import policy_at
from toolcassette.crypto import KEYS_VARIABLE, SIGNATURES_MAX, Identity, Signer, Trust, keys_of, trust_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["key_options", "keygen_verb", "signing_key", "trust_for"]

_F = TypeVar("_F", bound=Callable[..., Any])

_PUBLIC_SUFFIX: Final = ".pub"
_SIGNING_KEY_VARIABLE: Final = "TOOLCASSETTE_SIGNING_KEY"  # the path of a key file


def key_options(verb: _F) -> _F:
    """The options that say whom to trust."""
    verb = click.option(
        "--threshold",
        type=click.IntRange(1, SIGNATURES_MAX),
        default=1,
        help="so many trusted keys must have signed; more than 1 requires a signature",
    )(verb)
    verb = click.option("--require-signature", is_flag=True, help="a cassette without a signature is a finding")(verb)
    return click.option(
        "--key", "keys", metavar="KEY", multiple=True, help="a verifier key to trust, or a file of them; repeat it"
    )(verb)


def signing_key(verb: _F) -> _F:
    """The option that names the private key."""
    return click.option(
        "--key",
        "key",
        metavar="KEY_FILE",
        envvar=_SIGNING_KEY_VARIABLE,
        required=True,
        help=f"the private key to sign with; else that of {_SIGNING_KEY_VARIABLE}",
    )(verb)


def trust_for(keys: Sequence[str], *, required: bool, threshold: int, policy_from: str | None = None) -> Trust:
    """Whom to trust. Raises ``SignatureError``; ``click.ClickException`` for what is no number, or no revision."""
    policy = None if policy_from is None else policy_at(policy_from)
    named = [str(key) for key in keys_of(keys)]
    required = required or (policy is not None and policy.required)
    threshold = max(threshold, policy.threshold if policy else 1)
    environ = dict(os.environ)
    if not named and policy is not None and not environ.get(KEYS_VARIABLE, "").strip():
        named = [str(key) for key in policy.keys]
    if named:
        environ[KEYS_VARIABLE] = " ".join(named)
    try:
        return trust_of(required=required, threshold=threshold, environ=environ)
    except ValueError as error:
        raise click.ClickException(str(error)) from None


@click.command("keygen", short_help="make a key pair for signing or encrypting cassettes")
@click.argument("file", metavar="KEY_FILE")
@click.option("--name", help="what its signatures are called, like ci.example/recorder")
@click.option("--encryption", is_flag=True, help="a pair to encrypt for: an identity, and its recipient")
def keygen_verb(file: str, name: str | None, encryption: bool) -> int:
    """Make a key pair: the private key in KEY_FILE, mode 0600, and the public one in KEY_FILE.pub

    The public key is printed too. A verifier key goes to whoever is to trust the signatures of this key; with
    --encryption it is a recipient, and goes to whoever is to encrypt for it. Neither file is overwritten. Keep KEY_FILE
    out of version control: whoever reads it can sign, or open what is encrypted for it.
    """
    key, words = _pair(name, encryption=encryption)
    public = file + _PUBLIC_SUFFIX
    _create(public, f"{words}\n".encode(), 0o644)
    try:
        _create(file, key.to_bytes(), 0o600)
    except click.ClickException:
        os.unlink(public)  # noqa: PTH108 - a path as it was given; ours, made a moment ago
        raise
    say(words)
    complain(f"made {shown(file)} and {shown(public)}")
    return 0


def _pair(name: str | None, *, encryption: bool) -> tuple[Signer | Identity, str]:
    """A new private key, and the text of its public one. Raises ``click.UsageError``."""
    if encryption == (name is not None):
        raise click.UsageError("give --name, for a key that signs; or --encryption, for one to encrypt for")
    if name is None:
        identity = Identity.generate()
        return identity, str(identity.recipient)
    try:
        signer = Signer.generate(name)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return signer, str(signer.verifier)


def _create(path: str, data: bytes, mode: int) -> None:
    """Write a file that did not exist. Raises ``click.ClickException``."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        with os.fdopen(os.open(path, flags, mode), "wb") as file:
            file.write(data)
    except FileExistsError:
        raise click.ClickException(f"{shown(path)} exists already; nothing was touched, give another name") from None
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else None
        why = errno.errorcode.get(number or 0, "no such name")
        raise click.ClickException(f"could not write {shown(path)}: {why}") from None
