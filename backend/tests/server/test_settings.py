"""The settings: one field, one keyword, one variable, one row of the reference each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_origin

import pytest

from sluicegate.engine.options import EngineOptions
from sluicegate.errors import ConfigurationError
from sluicegate.server.command_parser import FLAGS, OPTIONS
from sluicegate.server.settings import Settings, load_settings

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "settings.md"


def rows() -> list[list[str]]:
    lines = REFERENCE.read_text("utf-8").splitlines()
    return [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| `")
    ]


def written(field: str) -> str:
    """A default in the notation of the reference."""
    value: Any = Settings.model_fields[field].default
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        return f"`{value:g}`"
    if isinstance(value, tuple):
        return f"`{','.join(value)}`" if value else ""
    return "" if value in (None, {}) else f"`{value}`"


def test_the_reference_lists_exactly_the_settings() -> None:
    fields = list(Settings.model_fields)
    named = [row[0].strip("`") for row in rows()]
    assert sorted(named) == sorted(fields)
    for name, variable, option, default, what in rows():
        field = name.strip("`")
        assert variable == f"`SLUICEGATE_{field.upper()}`"
        assert option == (f"`{FLAGS[field]}`" if field in FLAGS else "")
        assert default == written(field)
        assert what.endswith(".")


def test_every_option_sets_a_setting() -> None:
    assert {option.field for option in OPTIONS} <= set(Settings.model_fields)
    for option in OPTIONS:
        annotation = Settings.model_fields[option.field].annotation
        assert option.is_repeatable == (get_origin(annotation) is tuple)
        assert (option.constant is None) == (annotation is not bool)
        assert option.help[0].isupper()


def test_every_setting_of_the_engine_reaches_it() -> None:
    changed = {"release": "preview", "max_turns": 3, "approval_ttls": {"pay": 60.0}}
    engine = load_settings({}, changed | {"port": 1}).engine
    assert type(engine) is EngineOptions
    assert engine == EngineOptions(release="preview", max_turns=3, approval_ttls={"pay": 60.0})


ENVIRONMENT: list[tuple[str, str, object]] = [
    ("port", "9000", 9000),
    ("port", "", 8000),
    ("page", "false", False),
    ("page", "NO", False),
    ("release_fixed", "1", True),
    ("release_fixed", "on", True),
    ("approval_ttl", "1.5", 1.5),
    ("approval_ttls", "pay=60, send = 2.5", {"pay": 60.0, "send": 2.5}),
    (
        "origins",
        "https://A.example/, http://b.example:8080",
        ("https://a.example", "http://b.example:8080"),
    ),
    ("dynamic_gates", "one,,two,", ("one", "two")),
    ("suggestions", "Hello, world\n\n Two \n", ("Hello, world", "Two")),
    ("model", "gemini-2.5-pro", "gemini-2.5-pro"),
    ("live_models", "payer=gemini-3.8-live", {"payer": "gemini-3.8-live"}),
    ("sessions", "sqlite+aiosqlite:///a,b.db", "sqlite+aiosqlite:///a,b.db"),
]


@pytest.mark.parametrize(("field", "text", "value"), ENVIRONMENT)
def test_a_variable_sets_its_field(field: str, text: str, value: object) -> None:
    settings = load_settings({f"SLUICEGATE_{field.upper()}": text}, {})
    assert getattr(settings, field) == value


def test_arguments_take_precedence_over_the_environment() -> None:
    environment = {"SLUICEGATE_PORT": "nonsense", "SLUICEGATE_PREFIX": "/v1", "PORT": "1"}
    settings = load_settings(environment, {"port": 7000})
    assert (settings.port, settings.prefix, settings.host) == (7000, "/v1", "127.0.0.1")


WRONG: list[tuple[Mapping[str, Any], str]] = [
    ({"colour": "blue"}, "There is no setting 'colour'"),
    ({"port": -1}, "The setting port cannot be used"),
    ({"max_turns": 0}, "The setting max_turns cannot be used"),
    ({"linger": 0}, "The setting linger cannot be used"),
    ({"turn_timeout": float("inf")}, "The setting turn_timeout cannot be used"),
    ({"approval_ttls": {"pay": -1}}, "The setting approval_ttls cannot be used"),
    ({"origins": "https://a.example"}, "The setting origins cannot be used"),
    ({"origins": ["https://a.example/path"]}, "a scheme, a host and maybe a port"),
    ({"origins": ["*"]}, "a scheme, a host and maybe a port"),
    ({"allowed_hosts": ["*.example"]}, "no scheme, port or path"),
    ({"trusted_proxies": ["10.0.0.1/8"]}, "The setting trusted_proxies cannot be used"),
    ({"auth": "bearer:"}, "none, bearer:FILE or header:NAME"),
    ({"auth": "header:X User"}, "none, bearer:FILE or header:NAME"),
    ({"prefix": "api"}, "The setting prefix cannot be used"),
    ({"prefix": "/"}, "The setting prefix cannot be used"),
    ({"public_url": "https://a.example/"}, "The setting public_url cannot be used"),
    ({"dynamic_gates": ["a", "b"], "never_gates": ["b"]}, "both name b"),
    ({"title": ""}, "The setting title cannot be used"),
    ({"title": "x" * 61}, "The setting title cannot be used"),
    ({"title": "two\nlines"}, "one line of printable characters"),
    ({"welcome": "x" * 201}, "The setting welcome cannot be used"),
    ({"welcome": "\u202e"}, "one line of printable characters"),
    ({"suggestions": ["x"] * 51}, "The setting suggestions cannot be used"),
    ({"suggestions": ["x" * 501]}, "The setting suggestions cannot be used"),
    ({"suggestions": ["two\nlines"]}, "one line of printable characters"),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_an_invalid_setting_is_named_in_one_sentence(given: Mapping[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings({}, given)
    assert said in str(caught.value)
    assert re.fullmatch(r"[A-Z][^\n]*\.", str(caught.value))


def test_a_password_in_a_setting_is_not_printed() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings({"SLUICEGATE_PUBLIC_URL": "https://me:sk-secret@a.example"}, {})
    assert str(caught.value).startswith("The environment variable SLUICEGATE_PUBLIC_URL")
    assert "sk-secret" not in str(caught.value)
