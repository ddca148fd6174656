"""Which names are names of secrets: two tables, and what splits a name into words."""

from __future__ import annotations

import pytest

from toolcassette.redaction import names, secret_name
from toolcassette.redaction.names import NAME_SIGNS, words

SECRET = {
    "password": "password",
    "Password": "password",
    "PASSWORD": "password",
    "passwords": "passwords",
    "user_password": "password",
    "password_old": "password",
    "newPassword": "password",
    "password2": "password",
    "confirm-password": "password",
    "db.password": "password",
    "passwd": "passwd",
    "passphrase": "passphrase",
    "pass": "password",
    "db_pass": "password",
    "SMTP_PASS": "password",
    "pwd": "pwd",
    "api_key": "api-key",
    "apiKey": "api-key",
    "apikey": "apikey",
    "APIkey": "api-key",
    "DBpassword": "password",
    "APIKey": "api-key",
    "API_KEY": "api-key",
    "Api-Key": "api-key",
    "X-Api-Key": "api-key",
    "x-goog-api-key": "api-key",
    "OPENAI_API_KEY": "api-key",
    "openaiApiKey": "api-key",
    "api_keys": "api-keys",
    "apiKey2": "api-key",
    "authorization": "authorization",
    "Authorization": "authorization",
    "Proxy-Authorization": "authorization",
    "auth": "authorization",
    "token": "token",
    "access_token": "token",
    "accessToken": "token",
    "refresh_token": "token",
    "id_token": "token",
    "csrf_token": "token",
    "bot_token": "token",
    "GITHUB_TOKEN": "token",
    "X-Amz-Security-Token": "amz-security-token",
    "secret": "secret",
    "secrets": "secrets",
    "client_secret": "client-secret",
    "clientSecret": "client-secret",
    "webhook_secret": "secret",
    "AWS_SECRET_ACCESS_KEY": "secret-access-key",
    "secretAccessKey": "secret-access-key",
    "aws_access_key": "access-key",
    "private_key": "private-key",
    "privateKeyPem": "private-key",
    "signing_key": "signing-key",
    "encryption_key": "encryption-key",
    "SSH_KEY": "ssh-key",
    "cookie": "cookie",
    "Set-Cookie": "cookie",
    "cookies": "cookies",
    "credentials": "credentials",
    "connection_string": "connection-string",
    "jwt": "jwt",
    "otp": "otp",
    "cvv": "cvv",
    "recovery_codes": "recovery-codes",
    "seed_phrase": "seed-phrase",
    "mnemonic": "mnemonic",
}

PLAIN = [
    "max_tokens",
    "maxTokens",
    "max_token",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "tokens",
    "token_count",
    "tokenCount",
    "tokens_used",
    "token_ids",
    "token_type",
    "tokenizer",
    "next_page_token",
    "nextPageToken",
    "pageToken",
    "continuation_token",
    "eos_token",
    "stop_token",
    "pad_token",
    "has_password",
    "hasPassword",
    "is_secret",
    "password_required",
    "require_password",
    "requires_token",
    "password_length",
    "password_policy",
    "password_hint",
    "passwordless",
    "use_cookies",
    "cookie_count",
    "HTTPkeyboard",
    "TOKENs",
    "cookie_policy",
    "secretary",
    "secretion",
    "key",
    "keys",
    "keyboard",
    "primary_key",
    "foreign_key",
    "sort_key",
    "cache_key",
    "partition_key",
    "public_key",
    "api_key_id",
    "key_name",
    "author",
    "authors",
    "authority",
    "auth_method",
    "authenticated",
    "compass",
    "bypass",
    "passage",
    "passenger",
    "pass_count",
    "pass_rate",
    "monkey",
    "donkey_token_total",
    "credential_type",
    "opt",
    "option",
    "potpie",
    "string",
    "card",
    "discard",
    "",
    "value",
]


@pytest.mark.parametrize("name", SECRET)
def test_a_name_of_a_secret(name):
    assert secret_name(name) == SECRET[name]


@pytest.mark.parametrize("name", PLAIN)
def test_a_name_of_no_secret(name):
    assert secret_name(name) is None


def test_the_tables_are_as_long_as_they_should_be():
    assert len(SECRET) >= 40
    assert len(set(PLAIN)) == len(PLAIN) >= 40


@pytest.mark.parametrize("name", SECRET)
def test_every_secret_name_has_a_sign(name):
    for spelled in (name, name.upper(), *(gap.join(words(name)) for gap in ("_", "-", ".", " "))):
        if secret_name(spelled) is not None:
            assert NAME_SIGNS.search(f'{{"{spelled}":"x"}}'.lower().encode())


@pytest.mark.parametrize("phrase", names._PHRASES)
@pytest.mark.parametrize("form", ["", "old", "text", "2"])
def test_every_phrase_in_every_spelling_has_a_sign(phrase, form):
    some = [*phrase, form] if form else [*phrase]
    camel = some[0] + "".join(word.capitalize() for word in some[1:])
    for name in (camel, *(gap.join(["my", *some]) for gap in ("_", "-", ".", " "))):
        assert secret_name(name) is not None, name
        assert NAME_SIGNS.search(f'"{name}":'.lower().encode()), name


def test_common_words_are_no_signs():
    text = """The author says: the code of a string is the key to it. Tokens, tokenizer, max_tokens: 5. All tests pass;
    a passage for passengers, keyboards, a card, a phrase, a signature, the primary key, key_id."""
    assert NAME_SIGNS.search(text.lower().encode()) is None


def test_a_name_is_no_longer_than_names_are():
    assert secret_name("x" * 200 + "_password") is None
