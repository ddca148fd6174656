"""Which texts are secrets by their looks: the keys of providers, tokens, private keys, passwords inside addresses.

Theory. A shape is a pattern whose group 1, or whole match, is the secret. Each names a *needle*, text without which the
pattern cannot match: looking for a needle costs a hundredth of looking for the pattern, and most texts hold none.

Rule: a shape is narrow. Hashes, UUIDs, ids of any length and prose are none; a hit is a secret wherever it turns up.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["ASSIGNED", "LONG_SHAPES", "QUOTED", "RUN", "SCHEME", "SHORT_SHAPES", "Shape"]


class Shape(NamedTuple):
    """One pattern. ``id`` names its rule; one of ``needles`` stands in every text that it matches."""

    id: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]


def _shape(rule: str, needles: str, pattern: str) -> Shape:
    return Shape(rule, tuple(needles.split()), re.compile(pattern))


_B = r"(?<![A-Za-z0-9_-])"  # nothing of the same kind stands before it

# Each of these holds a run of so many characters, and few texts do.
RUN: Final = re.compile(r"[A-Za-z0-9+/_-]{16}")
LONG_SHAPES: Final = (
    _shape("openai-key", "sk-", _B + r"sk-(?=[A-Za-z0-9_-]*[0-9])[A-Za-z0-9_-]{20,}"),
    _shape("aws-access-key", "AKIA ASIA", _B + r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _shape("google-api-key", "AIza", _B + r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _shape("google-oauth", "ya29. GOCSPX-", _B + r"(?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{20,}"),
    _shape("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", _B + r"gh[pousr]_[A-Za-z0-9]{36,}"),
    _shape("github-token", "github_pat_", _B + r"github_pat_[A-Za-z0-9_]{22,}"),
    _shape("gitlab-token", "glpat-", _B + r"glpat-[A-Za-z0-9_-]{20,}"),
    _shape("slack-token", "xox", _B + r"xox[abeoprs]-[A-Za-z0-9-]{11,}"),
    _shape("slack-webhook", "hooks.slack.com", r"hooks\.slack\.com/services/(T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]{8,})"),
    _shape("stripe-key", "k_live_ k_test_ whsec_", _B + r"(?:[rs]k_(?:live|test)_|whsec_)[A-Za-z0-9]{10,}"),
    _shape("jwt", "eyJ", _B + r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    _shape("npm-token", "npm_", _B + r"npm_[A-Za-z0-9]{36}"),
    _shape("pypi-token", "pypi-AgE", _B + r"pypi-AgE[A-Za-z0-9_-]{20,}"),
    _shape("huggingface-token", "hf_", _B + r"hf_[A-Za-z0-9]{30,}"),
    _shape("sendgrid-key", "SG.", _B + r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _shape("digitalocean-token", "dop_v1_", _B + r"dop_v1_[a-f0-9]{64}"),
    _shape("shopify-token", "shpat_ shpca_ shppa_ shpss_", _B + r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    _shape("telegram-token", ":AA", r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),
    _shape("databricks-token", "dapi", _B + r"dapi[a-f0-9]{32}(?![a-f0-9])"),
    _shape("groq-key", "gsk_", _B + r"gsk_[A-Za-z0-9]{40,}"),
    _shape("xai-key", "xai-", _B + r"xai-[A-Za-z0-9]{40,}"),
    _shape("replicate-token", "r8_", _B + r"r8_[A-Za-z0-9]{30,}"),
    _shape("perplexity-key", "pplx-", _B + r"pplx-[A-Za-z0-9]{40,}"),
    _shape("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    _shape("vault-token", "hvs. hvb.", _B + r"hv[sb]\.[A-Za-z0-9_-]{20,}"),
    _shape("linear-key", "lin_api_", _B + r"lin_api_[A-Za-z0-9]{32,}"),
    _shape("notion-token", "ntn_", _B + r"ntn_[A-Za-z0-9]{40,}"),
)
SHORT_SHAPES: Final = (
    _shape(
        "private-key",
        "-----BEGIN",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----",
    ),
    _shape("url-credentials", "://", r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s/?#:@\"'<>⟦]*:([^\s/?#@\"'<>⟦]+)@"),
    _shape("bearer", "earer EARER", r"(?i:\bbearer)[ \t]+(?=[A-Za-z0-9._~+/=-]*[0-9])([A-Za-z0-9._~+/=-]{12,})"),
    _shape(
        "header",
        "uthorization: ookie: -key: -Key: -token: -Token: -secret: -Secret: -KEY: -TOKEN:",
        r"(?i:\b(?:(?:proxy-)?authorization|(?:set-)?cookie"
        r"|(?<![a-z0-9-])x-[a-z0-9-]{0,60}?(?:key|token|secret)))[ \t]*:[ \t]*"
        r"(?:(?i:bearer|basic|token)[ \t]+)?([^\s\"'⟦][^\r\n\"'⟦]*)",
    ),
)

# ``name=value`` in a query, a form, a connection string or a line of a settings file, bare or in quotes; the name
# decides. What stands for a value, in a template, a query or a piece of code, is none.
_NO_VALUE: Final = r"(?!(?:\?|\$[0-9]+|\$?\{\w*\}|%s|%\(\w+\)s|\*+|None|null|self\.\w+)(?:[&\s;,\"'#)\]]|\Z))"
ASSIGNED: Final = re.compile(
    r"(?:^|(?<=[?&#;,(\s\"']))(?P<name>[A-Za-z][A-Za-z0-9_.\-]{1,63})=(?P<quote>[\"'])?"
    + _NO_VALUE
    + r"(?P<value>(?(quote)(?:(?!(?P=quote))[^\r\n⟦])+|[^&\s;,\"'#⟦]+))"
)

# ``"name": "value"`` in a text that is not JSON as a whole.
QUOTED: Final = re.compile(r"\"(?P<name>[A-Za-z][A-Za-z0-9_.\-]{1,63})\"\s*:\s*\"(?P<value>(?:[^\"\\⟦]|\\.)+)\"")

# Under a secret name: a word that says how the secret is used, and the secret.
SCHEME: Final = re.compile(r"(?i:(?:bearer|basic|token|apikey|digest)[ \t]+)(\S+)")
