from __future__ import annotations

import json
from typing import Any

import pytest

from sluicegate.errors import ConfigurationError
from sluicegate.replay.recording import compact
from sluicegate.replay.redaction import REDACTED, Redaction

SECRET = "4711-0815"

HELD: dict[str, Any] = {
    "the input of a call": {"type": "tool-input-available", "input": {"iban": SECRET}},
    "deep in an output": {"type": "tool-output-available", "output": [{"a": {"iban": [SECRET]}}]},
    "an output that is JSON": {"output": {"result": f'{{"iban": "{SECRET}"}}'}},
    "an output that is a piece of JSON": {"output": f'{{"iban": "{SECRET}'},
    "a pair in a piece of JSON": {"output": f'[{{"name": "iban", "value": "{SECRET}'},
    "a piece of streamed arguments": {"type": "tool-input-delta", "inputTextDelta": SECRET},
    "arguments that ADK streams": {
        "content": {"parts": [{"functionCall": {"partialArgs": [{"stringValue": SECRET}]}}]}
    },
    "a call of ADK": {"content": {"parts": [{"functionCall": {"args": {"iban": SECRET}}}]}},
    "a confirmation of ADK": {
        "functionCall": {"args": {"originalFunctionCall": {"args": {"iban": SECRET}}}}
    },
    "a result of ADK": {"functionResponse": {"response": {"iban": SECRET}}},
    "state": {"actions": {"stateDelta": {"iban": SECRET}}},
    "an edit": {"edits": {"approval-1": {"iban": SECRET}}},
    "the outcome of a decision": {"state": "executed", "outcome": {"iban": SECRET}},
    "data of a page": {"type": "data-form", "data": {"iban": SECRET}},
    "beside the protocol's words": {"type": "tool-pay", "iban": SECRET},
}


@pytest.mark.parametrize("where", HELD)
def test_a_named_field_is_redacted_at_any_depth(where: str) -> None:
    body = HELD[where]
    found = Redaction(["iban"]).of(body)
    assert SECRET not in json.dumps(found)
    assert SECRET in json.dumps(body)
    assert Redaction(["iban"]).of_text(compact(body)) == compact(found)


def test_other_fields_are_unchanged() -> None:
    body = {"type": "tool-pay", "input": {"iban": SECRET, "amount": 5, "to": ["ann", None]}}
    expected = {"type": "tool-pay", "input": {"iban": REDACTED, "amount": 5, "to": ["ann", None]}}
    assert Redaction(["iban", "of nothing"]).of(body) == expected


def test_keys_of_the_protocol_are_redacted_only_in_user_data() -> None:
    body = {"id": "c1", "type": "x", "input": {"id": SECRET, "type": SECRET}, "toolCallId": "t"}
    found = Redaction(["id", "type", "toolCallId"]).of(body)
    assert found == {**body, "input": {"id": REDACTED, "type": REDACTED}}


def test_the_name_text_redacts_all_text_of_messages() -> None:
    message = {"parts": [{"type": "text", "text": SECRET}]}
    redaction = Redaction(["text"])
    assert redaction.of(message) == {"parts": [{"type": "text", "text": REDACTED}]}
    assert redaction.of({"type": "text-delta", "delta": SECRET})["delta"] == REDACTED
    assert Redaction(["iban"]).of({"delta": SECRET})["delta"] == SECRET


SECRETS = [
    *("client_secret", "clientSecret", "access_token", "authResponseUri", "API-Key", "password"),
    *("PASSWORD", "passwd", "pwd", "db_password", "userPassword", "passphrase", "secret", "Token"),
    *("refreshToken", "ID_TOKEN", "session-token", "github_token_secret", "STRIPE_API_KEY"),
    *("AWS_SECRET_ACCESS_KEY", "privateKey", "signing_key", "Authorization", "Cookie"),
    *("Set-Cookie", "proxy-authorization", "x-api-key", "jwt", "otp", "CVV", "credentials"),
]


@pytest.mark.parametrize("name", SECRETS)
def test_credentials_are_never_recorded(name: str) -> None:
    body = {"output": {"credential": {"oauth2": {name: SECRET, "scopes": ["mail"]}}}}
    expected = {"output": {"credential": {"oauth2": {name: REDACTED, "scopes": ["mail"]}}}}
    assert Redaction().of(body) == expected
    assert Redaction().of_text(compact(body)) == compact(expected)


@pytest.mark.parametrize("place", ["input", "args", "output", "response", "outcome"])
@pytest.mark.parametrize("name", SECRETS)
def test_secrets_are_redacted_in_results_as_in_arguments(place: str, name: str) -> None:
    held: dict[str, Any] = {
        "field": {name: SECRET},
        "text": f'{{"{name}": "{SECRET}"}}',
        "piece": f'{{"a": [{{"{name}": "{SECRET}',
        "piece in text": json.dumps({"a": f'{{"{name}": "{SECRET}'})[:-3],
        "pairs": [{"name": name, "value": SECRET}, {"key": name, "value": SECRET}],
    }
    for shape, value in held.items():
        body = {"type": "x", place: {"result": value}}
        assert SECRET not in json.dumps(Redaction().of(body)), shape
        assert SECRET not in Redaction().of_text(compact(body)), shape


@pytest.mark.parametrize(
    "kept",
    [
        {"nextPageToken": "p2", "maxTokens": 5, "promptTokenCount": 5, "monkey": 1, "pin": 4},
        {"name": "amount", "value": "5"},
        "[note] the secret of a good password",
        '{"title": "the token',
    ],
)
def test_similar_names_and_plain_sentences_are_kept(kept: Any) -> None:
    assert Redaction().of({"output": {"result": kept}}) == {"output": {"result": kept}}


@pytest.mark.parametrize("name", ["IBAN", "account_holder", "accountHolder", "Account-Holder"])
def test_a_name_is_redacted_in_any_case(name: str) -> None:
    redaction = Redaction(["iban", "Account_Holder"])
    for place in ("input", "output"):
        assert redaction.of({place: {name: SECRET}}) == {place: {name: REDACTED}}
        assert SECRET not in redaction.of_text(compact({place: {"x": f'{{"{name}": "{SECRET}'}}))


def test_without_names_argument_deltas_are_kept() -> None:
    text = '{"type":"tool-input-delta","inputTextDelta":"{\\"amount\\":"}'
    assert Redaction().of_text(text) is text


def test_a_streamed_secret_of_adk_is_not_recorded() -> None:
    pieces = [
        {"jsonPath": "$.amount", "numberValue": 5},
        {"jsonPath": "$.login.db_password", "stringValue": SECRET},
    ]
    found = Redaction().of({"functionCall": {"partialArgs": pieces}})
    assert found == {"functionCall": {"partialArgs": pieces[:1]}}


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="is empty"):
        Redaction(["iban", " "])
