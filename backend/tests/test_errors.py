import copy
import pickle
import re

import pytest

from sluicegate import errors
from sluicegate.errors import (
    AlreadyDecided,
    Changed,
    ChunkOrderError,
    ConfigurationError,
    Forbidden,
    HeldByAnotherOwner,
    Malformed,
    NoPreview,
    NotEntitled,
    NotIdempotent,
    NotRewindable,
    RequestError,
    RequestTimeout,
    ScenarioError,
    SluicegateError,
    StoreError,
    StoreUnavailable,
    Superseded,
    TakenOver,
    TooLarge,
    ToolError,
    TooManyRequests,
    TurnRunning,
    Unauthenticated,
    Unavailable,
    Unknown,
    UnsupportedMediaType,
    UpgradeRequired,
    WouldForgetEffect,
    as_request_error,
)

REQUEST_ERRORS: list[tuple[type[RequestError], int, str]] = [
    (Malformed, 400, "malformed"),
    (Unauthenticated, 401, "unauthenticated"),
    (Forbidden, 403, "origin"),
    (NotEntitled, 403, "not_entitled"),
    (Unknown, 404, "unknown"),
    (RequestTimeout, 408, "timeout"),
    (TurnRunning, 409, "turn_running"),
    (AlreadyDecided, 409, "already_decided"),
    (Changed, 409, "changed"),
    (NoPreview, 409, "no_preview"),
    (NotIdempotent, 409, "not_idempotent"),
    (Superseded, 409, "superseded"),
    (WouldForgetEffect, 409, "would_forget_effect"),
    (NotRewindable, 409, "not_rewindable"),
    (HeldByAnotherOwner, 409, "held_elsewhere"),
    (TakenOver, 409, "taken_over"),
    (TooLarge, 413, "too_large"),
    (UnsupportedMediaType, 415, "unsupported_media_type"),
    (UpgradeRequired, 426, "upgrade_required"),
    (TooManyRequests, 429, "too_many_requests"),
    (Unavailable, 503, "unavailable"),
]


@pytest.mark.parametrize(("error", "status", "code"), REQUEST_ERRORS)
def test_a_request_error_has_its_status_and_its_code(
    error: type[RequestError], status: int, code: str
) -> None:
    raised = error()
    assert (raised.status, raised.code) == (status, code)


@pytest.mark.parametrize("error", [row[0] for row in REQUEST_ERRORS])
def test_the_default_sentence_suggests_an_action(error: type[RequestError]) -> None:
    sentence = str(error())
    assert re.fullmatch(r"[A-Z][^.]*; [^.]*\.", sentence)
    assert error().message == sentence


@pytest.mark.parametrize("error", [row[0] for row in REQUEST_ERRORS])
def test_a_given_sentence_is_the_message(error: type[RequestError]) -> None:
    assert str(error("Do this instead.")) == error("Do this instead.").message == "Do this instead."


def test_the_table_holds_every_request_error() -> None:
    assert {row[0] for row in REQUEST_ERRORS} == set(RequestError.__subclasses__())


@pytest.mark.parametrize(
    ("code", "flag"), [("origin", "--origin"), ("host", "--allowed-host")], ids=["origin", "host"]
)
def test_a_403_names_the_refused_header_and_the_flag(code: str, flag: str) -> None:
    refused = Forbidden(code="host") if code == "host" else Forbidden()
    assert refused.code == code
    assert flag in refused.message


def test_only_rate_limits_and_unavailability_have_a_default_retry_after() -> None:
    patient = {error for error, _, _ in REQUEST_ERRORS if error().retry_after is not None}
    assert patient == {TooManyRequests, Unavailable}


def test_retry_after_can_be_set() -> None:
    assert Unavailable(retry_after=30).retry_after == 30
    assert TurnRunning(retry_after=2).retry_after == 2


@pytest.mark.parametrize(
    "error", [Unavailable("Wait.", retry_after=7), Forbidden("No.", code="host"), ToolError("No.")]
)
def test_an_error_survives_a_copy(error: SluicegateError) -> None:
    for copied in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (type(copied), str(copied), vars(copied)) == (type(error), str(error), vars(error))


def test_only_an_unavailable_store_becomes_a_request_error() -> None:
    unavailable = as_request_error(StoreUnavailable("database is locked"))
    assert isinstance(unavailable, Unavailable)
    assert (unavailable.retry_after, unavailable.message) == (5, Unavailable.sentence)
    superseded = Superseded()
    assert as_request_error(superseded) is superseded
    assert as_request_error(StoreError("lost")) is as_request_error(RuntimeError("x")) is None


def test_a_tool_error_carries_its_public_message() -> None:
    assert ToolError("The account is closed.").message == "The account is closed."


@pytest.mark.parametrize(
    "error", [ChunkOrderError, ConfigurationError, ScenarioError, StoreError, ToolError]
)
def test_internal_errors_are_not_request_errors(error: type[SluicegateError]) -> None:
    assert issubclass(error, SluicegateError)
    assert not issubclass(error, RequestError)


def test_a_scenario_error_is_a_configuration_error() -> None:
    assert issubclass(ScenarioError, ConfigurationError)


def test_the_docstring_draws_every_exception() -> None:
    classes = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, SluicegateError)
    }
    assert errors.__doc__ is not None
    drawn = re.findall(r"^ {4}[│├└─ ]*([A-Z]\w+)", errors.__doc__, re.MULTILINE)
    assert set(drawn) == classes
    assert len(drawn) == len(classes)
