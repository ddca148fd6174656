"""Which names are names of secrets: whole words, after snake, kebab, dotted and camel case are split.

Theory. A name is a row of words whose last one says what the thing is: ``openai_api_key`` is a key, ``token_count``
is a count. So a name is secret if it *ends* in one of a table of phrases, where words that only say which of several is
meant (``password_old``, ``apiKey2``) are left off the end first. A name is not secret if a word before the phrase turns
it into another thing: a question (``has_password``), a number (``max_token``), a place in a list (``page_token``).

Rule: a table and no guess. A name that is secret by one version of the table stays so in that version.
"""

from __future__ import annotations

import functools
import re
from typing import Final

__all__ = ["NAME_SIGNS", "secret_name", "words"]

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_GLUED: Final = re.compile(r"(?<=[A-Z][A-Z])(?=[a-z])")  # where APIkey has its seam

# Phrase -> the id of its rule. Plurals are spelled out, since "tokens" is a number of tokens far more often.
_PHRASES: Final[dict[tuple[str, ...], str]] = {
    tuple(str(phrase).split()): phrase.replace(" ", "-")
    for phrase in (
        "access key",
        "account key",
        "amz credential",
        "amz security token",
        "amz signature",
        "api key",
        "api keys",
        "apikey",
        "auth key",
        "authorization",
        "backup code",
        "backup codes",
        "bearer",
        "card number",
        "client secret",
        "connection string",
        "cookie",
        "cookies",
        "credential",
        "credentials",
        "cvc",
        "cvv",
        "encryption key",
        "jwt",
        "license key",
        "master key",
        "mnemonic",
        "otp",
        "passcode",
        "passphrase",
        "passwd",
        "password",
        "passwords",
        "private key",
        "pw",
        "pwd",
        "recovery code",
        "recovery codes",
        "recovery phrase",
        "secret",
        "secret access key",
        "secret key",
        "secrets",
        "seed phrase",
        "service key",
        "shared access key",
        "shared access signature",
        "shared key",
        "signing key",
        "ssh key",
        "storage key",
        "subscription key",
        "token",
        "totp",
    )
}
_PHRASES.update(
    {
        ("accesskey",): "access-key",
        ("accesstoken",): "token",
        ("accountkey",): "account-key",
        ("authtoken",): "token",
        ("clientsecret",): "client-secret",
        ("privatekey",): "private-key",
        ("refreshtoken",): "token",
        ("secretkey",): "secret-key",
    }
)
_WORDS_MAX: Final = max(map(len, _PHRASES))

# A name that is nothing but this: in a longer one it says too little.
_ALONE: Final = {"auth": "authorization", "pass": "password", "authentication": "authorization"}
# ... or what it belongs to stands right before it.
_PASS_OF: Final = frozenset({
    "admin", "db", "email", "ftp", "imap", "login", "mail", "mysql", "pg", "postgres", "proxy", "redis", "root", "smtp",
    "ssh", "sudo", "user",
})  # fmt: skip

# At the end of a name: which of several, or in which form. It stays what it is.
_FORMS: Final = frozenset({
    "again", "b64", "base64", "confirm", "confirmation", "current", "dev", "encoded", "env", "hash", "header", "json",
    "live", "new", "old", "pem", "plain", "plaintext", "prod", "raw", "repeat", "str", "string", "test", "text",
    "value",
})  # fmt: skip

# Before the phrase, anywhere: then the name is that of a question, a number or a setting.
_TURNS: Final = frozenset({
    "allow", "allows", "can", "count", "disable", "enable", "enables", "expires", "forgot", "has", "is", "max", "min",
    "missing", "n", "need", "needs", "no", "num", "number", "per", "require", "required", "requires", "should", "show",
    "skip", "supports", "total", "use", "uses", "valid", "with", "without",
})  # fmt: skip
# Right before "token": then it is a place in a list, or a piece of text.
_TOKENS: Final = frozenset({
    "begin", "bos", "cls", "completion", "continuation", "continue", "cursor", "delta", "end", "eos", "first", "image",
    "input", "last", "mask", "next", "output", "pad", "page", "prompt", "sep", "special", "start", "stop", "sync",
    "text", "think", "thinking", "top", "unk",
})  # fmt: skip

# Text that holds none of these, in lower case, names no secret. Common words alone are none ("the code", "a string",
# "an author", "tokens"): what must stand before them is looked for behind them, since few texts come so far. Between
# two words of a name stands one character, or none.
_BEFORE: Final = {
    "code": "up ry",
    "key": "api auth ared cess ense ount ning rage ssh ster tion vate vice",
    "phrase": "ed ry",
    "signature": "mz ss",
    "string": "tion",
}


def _after(word: str) -> str:
    ends = [end + gap for end in _BEFORE[word].split() for gap in ("", ".")]
    return f"{word}(?:{'|'.join(f'(?<={end}{word})' for end in ends)})"


NAME_SIGNS: Final = re.compile(
    (
        rb"auth(?!or(?!i[zs]))|bearer|c(?:ard.?num|ookie|redential|v[cv])|jwt|mnemonic|otp"
        rb"|p(?:w|ass(?:w|ph|code|(?![a-z])(?:(?<! pass)|(?=[\"\\]))))|secret|token(?!i|s(?![a-z]))|"
    )
    + "|".join(map(_after, _BEFORE)).encode(),
    re.DOTALL,
)


def words(name: str) -> list[str]:
    """The words of a name, in lower case: ``X-Api-Key2`` gives x, api, key, 2."""
    return [word.lower() for word in _WORD.findall(name)]


@functools.lru_cache(maxsize=4096)
def secret_name(name: str) -> str | None:
    """The id of the rule by which a name is that of a secret (``api-key``); None for any other name."""
    if len(name) > 128 or "⟦" in name:  # no name: it would be kept, or is a stand-in
        return None
    return _of_words(words(name)) or _of_words(words(_GLUED.sub(" ", name)))


def _of_words(found: list[str]) -> str | None:
    rule = _phrase(found)
    while rule is None and len(found) > 1 and (found[-1] in _FORMS or found[-1].isdigit()):
        found.pop()
        rule = _phrase(found)
    return rule or None


def _phrase(found: list[str]) -> str | None:
    """The rule of the phrase that some words end in; empty where what stands before turns it into another thing."""
    if len(found) == 1 and found[0] in _ALONE:
        return _ALONE[found[0]]
    if len(found) > 1 and found[-1] == "pass" and found[-2] in _PASS_OF:
        return "password"
    for length in range(min(_WORDS_MAX, len(found)), 0, -1):
        rule = _PHRASES.get(tuple(found[-length:]))
        if rule is not None:
            before = found[:-length]
            turned = not _TURNS.isdisjoint(before) or (rule == "token" and before[-1:] and before[-1] in _TOKENS)
            return "" if turned else rule
    return None
