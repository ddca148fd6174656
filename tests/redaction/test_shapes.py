"""Which texts are secrets by their looks, one example of each shape; and which texts only look a little like it."""

from __future__ import annotations

import base64
import random
import string
import uuid

import pytest

from toolcassette.redaction import NEWEST, Redactor, Rules
from toolcassette.redaction.shapes import LONG_SHAPES, SHORT_SHAPES
from toolcassette.redaction.views import applied

_chance = random.Random(7)
_ALNUM = string.ascii_letters + string.digits


def some(length: int, alphabet: str = _ALNUM) -> str:
    """A random text that holds a digit and is the same in every run."""
    return "".join(_chance.choices(alphabet, k=length - 2)) + "7" + alphabet[3]


_HEX = "0123456789abcdef"
_UPPER = string.ascii_uppercase + string.digits
_CLAIMS = (b'{"alg":"HS256"}', b'{"sub":"12345"}')
_JWT = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in _CLAIMS)

# Put together here, so that no file of this repository holds the shape of a key.
SHAPES = [
    ("openai-key", "sk-" + some(48)),
    ("openai-key", "sk-proj-" + some(40) + "_-" + some(20)),
    ("openai-key", "sk-ant-api03-" + some(60)),
    ("aws-access-key", "AKIA" + some(16, _UPPER)),
    ("aws-access-key", "ASIA" + some(16, _UPPER)),
    ("google-api-key", "AIza" + some(35)),
    ("google-oauth", "ya29." + some(60)),
    ("google-oauth", "GOCSPX-" + some(28)),
    ("github-token", "ghp_" + some(36)),
    ("github-token", "gho_" + some(36)),
    ("github-token", "ghs_" + some(36)),
    ("github-token", "github_pat_" + some(22) + "_" + some(59)),
    ("gitlab-token", "glpat-" + some(20)),
    ("slack-token", "xoxb-" + some(12, string.digits) + "-" + some(24)),
    ("slack-webhook", "T" + some(8, _UPPER) + "/B" + some(8, _UPPER) + "/" + some(24)),
    ("stripe-key", "sk_live_" + some(24)),
    ("stripe-key", "rk_test_" + some(24)),
    ("stripe-key", "whsec_" + some(32)),
    ("jwt", _JWT + "." + some(43)),
    ("npm-token", "npm_" + some(36)),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc" + some(60)),
    ("huggingface-token", "hf_" + some(34)),
    ("sendgrid-key", "SG." + some(22) + "." + some(43)),
    ("digitalocean-token", "dop_v1_" + some(64, _HEX)),
    ("shopify-token", "shpat_" + some(32, _HEX)),
    ("telegram-token", some(9, string.digits) + ":AA" + some(33)),
    ("databricks-token", "dapi" + some(32, _HEX)),
    ("groq-key", "gsk_" + some(52)),
    ("xai-key", "xai-" + some(80)),
    ("replicate-token", "r8_" + some(37)),
    ("perplexity-key", "pplx-" + some(48)),
    ("age-key", "AGE-SECRET-KEY-1" + some(58, _UPPER)),
    ("vault-token", "hvs." + some(24)),
    ("linear-key", "lin_api_" + some(40)),
    ("notion-token", "ntn_" + some(46)),
]
_PEM = "-----BEGIN %s-----\n" + some(64) + "\n" + some(20) + "==\n-----END %s-----"
# rule, text, the secret in it
SHORT = [
    ("private-key", text := _PEM % (("PRIVATE KEY",) * 2), text),
    ("private-key", text := _PEM % (("RSA PRIVATE KEY",) * 2), text),
    ("private-key", text := _PEM % (("OPENSSH PRIVATE KEY",) * 2), text),
    ("private-key", text := _PEM % (("PGP PRIVATE KEY BLOCK",) * 2), text),
    ("url-credentials", "https://me:hunter2@example.org/x", "hunter2"),
    ("url-credentials", "postgresql+psycopg://app:s3cr%40t!@db.internal:5432/prod", "s3cr%40t!"),
    ("url-credentials", "redis://:pa55word@cache:6379/0", "pa55word"),
    ("url-credentials", "mongodb+srv://u:p1@cluster0.example.net/?w=majority", "p1"),
    ("bearer", "curl -H 'Authorization: Bearer abcdef123456789'", "abcdef123456789"),
    ("bearer", "sends bearer 0123456789abcdef along", "0123456789abcdef"),
    ("header", "GET / HTTP/1.1\r\nAuthorization: Basic dXNlcjpwYXNz\r\nHost: x", "dXNlcjpwYXNz"),
    ("header", "Cookie: sid=31d4d96e407aad42; lang=en", "sid=31d4d96e407aad42; lang=en"),
    ("header", "x-api-key: letmein\n", "letmein"),
    ("header", "X-Auth-Token:\topensesame", "opensesame"),
]

NO_SHAPES = {
    "a git sha": "31d4d96e407aad42fbd2a0b1e4dc1c43d57f45a2",
    "a short git sha": "0314c5c",
    "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "an etag": '"33a64df551425fcc55e4d42a148795d9f25f89d4"',
    "a uuid": str(uuid.UUID(int=0x1234567890ABCDEF1234567890ABCDEF)),
    "a ulid": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "a long id": "task-1234567890123456789012345678901234567890",
    "desk-": "desk-2f7a0c9b8e6d5f4a3b2c1d0e9f8a7b6c",
    "task in prose": "see task-123456789012345678901234 for the risk-1234567890123456789012",
    "an OpenAI id": "chatcmpl-9xKd0aQ3mZ8vB2nC4tY6uI1oP5sD7fG",
    "a tool call id": "call_9xKd0aQ3mZ8vB2nC4tY6uI1o",
    "an image": "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 4).decode(),
    "a hash for pip": "sha256:" + "0a1b2c3d" * 8,
    "an integrity": "sha512-" + base64.b64encode(bytes(range(64))).decode(),
    "prose": "The bearer of this letter asks for the token of the secretary, and for the password hint.",
    "bearer in prose": "a bearer authentication-scheme is described in RFC 6750",
    "a url": "https://example.org:8443/a/b?page=2&sort=desc#top",
    "an e-mail": "mailto:me@example.org",
    "a git remote": "git@github.com:owner/repo.git",
    "an ssh url": "ssh://git@example.org:22/repo.git",
    "a url with an at": "https://example.org/@user/status/1234567890123456789",
    "a time": "12:30:45 user@host",
    "a public key": "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
    "a certificate": "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUd\n-----END CERTIFICATE-----",
    "sk- alone": "sk-learn and sk-something-that-has-no-number-in-it",
    "hf_": "hf_hub_download",
    "npm_": "npm_config_registry",
    "AKIA": "AKIAPREFIX",
    "an arn": "arn:aws:iam::123456789012:user/Development/product_1234",
    "a model": "gpt-4o-mini-2024-07-18",
    "a path": "/usr/lib/python3.11/site-packages/toolcassette/redaction/shapes.py",
    "code": "for key, value in sorted(headers.items()): print(f'{key}: {value}')",
    "css": "color: red; content: '\\201C'; background: url(data:image/gif;base64,R0lGODlhAQABAAAAACw=)",
    "a table": "| token | count |\n| --- | --- |\n| the | 12 |",
    "a question": "is password=? allowed, and max_tokens=100 or next_page_token=CAUQAA too",
    "sql": "UPDATE users SET password=? , token=$1, secret=%s WHERE id=?",
    "a template": "https://x.example/?token={token}&api_key=${API_KEY}&secret=***",
    "a repr": "Client(token=None, api_key=self.api_key, password=null)",
    "a version": "toolcassette==0.1.0 --hash=sha256:" + "ab12" * 16,
    "eyJ alone": "eyJhbGciOiJIUzI1NiJ9",
    "a cookie recipe": "cookie recipe: butter, sugar",
}

# rule, text before the secret, the secret, text after it
ASSIGNED = [
    ("password", "Server=db;User Id=sa;Password=", "hunter2", ";Encrypt=true"),
    ("password", "host=db user=me password=", "hunter2", " dbname=x"),
    ("password", "host=db password='", "hunter two", "' dbname=x"),
    ("token", "https://x.example/?page=2&access_token=", "abc", "&sort=up"),
    ("token", "https://x.example/#access_token=", "abc", ""),
    ("client-secret", "grant_type=client_credentials&client_secret=", "abc", ""),
    ("api-key", "DEBUG=1\nOPENAI_API_KEY=", "letmein", "\nPORT=80"),
    ("api-key", 'export API_KEY="', "let me in", '"'),
    ("account-key", "AccountName=me;AccountKey=", "a+b/c==", ";EndpointSuffix=x"),
    ("shared-access-key", "SharedAccessKeyName=n;SharedAccessKey=", "abc=", ""),
    ("password", 'python: {"user": "me", "password": "', "hunter2", '", "n": None}'),
    ("password", "100% of 5%a%20b?q=50%&password=", "hunter2", "&z=1"),
    ("token", "Client(token='", "hunter2", "', n=3)"),
]


def found(text: str) -> list[str]:
    return Redactor(Rules(NEWEST)).text_rules(text)


def without_secrets(text: str) -> str:
    return applied(text, Redactor(Rules(NEWEST)).text_edits(text))


def test_there_is_an_example_of_every_shape():
    assert {shape.id for shape in LONG_SHAPES} == {rule for rule, _ in SHAPES}
    assert {shape.id for shape in SHORT_SHAPES} == {rule for rule, *_ in SHORT}


@pytest.mark.parametrize("around", ["%s", "see %s.", '{"x": "%s"}', "(%s)", "a=%s&b=1", "<b>%s</b>", "\n%s\n", "`%s`,"])
@pytest.mark.parametrize(("rule", "secret"), SHAPES)
def test_a_shape(rule, secret, around):
    if rule == "slack-webhook":
        around = around.replace("%s", "https://hooks.slack.com/services/%s")
    assert without_secrets(around % secret) == around % f"⟦redacted:{rule}:1⟧"


@pytest.mark.parametrize(("rule", "text", "secret"), SHORT)
def test_a_shape_inside_a_text(rule, text, secret):
    again = without_secrets(text)
    assert again == text.replace(secret, f"⟦redacted:{rule}:1⟧") or rule == "bearer"
    assert secret not in again


@pytest.mark.parametrize(("rule", "before", "secret", "after"), ASSIGNED)
def test_a_name_and_its_value_inside_a_text(rule, before, secret, after):
    assert without_secrets(before + secret + after) == f"{before}⟦redacted:{rule}:1⟧{after}"


@pytest.mark.parametrize("name", NO_SHAPES)
def test_no_shape(name):
    assert found(NO_SHAPES[name]) == []


@pytest.mark.parametrize("shape", [*LONG_SHAPES, *SHORT_SHAPES], ids=lambda shape: shape.id)
def test_a_needle_stands_in_every_example_of_its_shape(shape):
    """A text without a needle is not looked at with the pattern."""
    texts = [secret for rule, secret in SHAPES if rule == shape.id] + [text for _, text, _ in SHORT]
    texts = [text for text in texts if shape.pattern.search(text)]
    for text in texts:
        assert any(needle in text for needle in shape.needles)


@pytest.mark.parametrize(
    "run", ["a", "a1", "x-", "%", "%2", "a.", "eyJ", "k=", '"k', "\\\\", "\\u00", "sk-", "-----BEGIN "]
)
@pytest.mark.parametrize("end", ["", " https://x.example 100%20 x-key: \\u0041 a=b password"])
def test_a_long_run_costs_no_square_of_its_length(run, end):
    """A tenth of a megabyte: with the square of it this would take an hour."""
    assert len(found(run * (100_000 // len(run)) + end)) < 3
