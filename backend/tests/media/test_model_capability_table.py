"""The table of capabilities, by every name of a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from sluicegate.errors import ConfigurationError
from sluicegate.media.file_selection import ModelProfile
from sluicegate.media.model_capability_table import (
    CapabilityTable,
    nests_media,
    normalise_model_name,
)
from sluicegate.media.model_client_libraries import Route

NESTING = [
    "gemini-3-pro-preview",
    "gemini-3-flash",
    "gemini-3.1-pro-preview",
    "gemini-3.5-flash",
    "gemini-4-ultra",
    "gemini-12-nano",
    "GEMINI-3-PRO",
    " gemini-3-pro ",
    "models/gemini-3-pro",
    "publishers/google/models/gemini-3-pro",
    "projects/p/locations/global/publishers/google/models/gemini-3.1-pro",
    "gemini/gemini-3-pro",
    "vertex_ai/gemini-3-pro",
    "openrouter/google/gemini-3-pro-preview:free",
    "gemini-2.5-computer-use-preview-10-2025",
]
NOT_NESTING = [
    "gemini-2.5-pro",
    "gemini-2.5-flash",
    "gemini-2.5-flash-lite",
    "gemini-2.0-flash",
    "gemini-2.0-flash-live-001",
    "gemini-1.5-pro",
    "gemini-flash-latest",
    "models/gemini-pro-latest",
    "gemini-30000x",
    "tunedModels/gemini-3-mine",
    "projects/p/locations/l/endpoints/123",
    "gpt-4o",
    "openai/gpt-5.1",
    "o3-mini",
    "ollama_chat/llama3:8b",
    "scripted",
    "",
    None,
]


@pytest.mark.parametrize("model", NESTING)
def test_gemini_3_reads_files_inside_of_responses(model: str) -> None:
    assert nests_media(model, "genai")
    assert nests_media(model, "vertex")


@pytest.mark.parametrize("model", NOT_NESTING)
def test_other_models_do_not_read_files_inside_of_responses(model: str | None) -> None:
    assert not nests_media(model, "genai")


ROUTES: list[tuple[Route, bool]] = [
    ("genai", False),
    ("vertex", False),
    ("litellm", False),
    ("other", False),
    ("anthropic", True),
]


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "anthropic/claude-opus-4-1"])
@pytest.mark.parametrize(("route", "nests"), ROUTES)
def test_claude_reads_files_inside_of_responses_by_its_own_client_alone(
    model: str, route: Route, nests: bool
) -> None:
    assert nests_media(model, route) is nests
    profile = ModelProfile(CapabilityTable.load().row(model), route)
    assert profile.results == ("nested" if nests else "message")


FAMILIES = [
    ("claude-sonnet-4-5", "claude"),
    ("anthropic/claude-opus-4-1", "claude"),
    ("vertex_ai/claude-3-7-sonnet@20250219", "claude"),
    ("bedrock/us.anthropic.claude-3-5-sonnet-20240620-v1:0", "claude"),
    ("litellm_proxy/anthropic/claude-haiku-4-5", "claude"),
    ("CLAUDE-3", "claude"),
    ("sonnet", "claude"),
    ("gpt-4o-mini", "openai"),
    ("openai/gpt-5", "openai"),
    ("openai/ft:gpt-4o:acme::id", "openai"),
    ("chatgpt-4o-latest", "openai"),
    ("openai/o4-mini", "openai"),
    ("azure/my-deployment", "unknown"),
    ("mistral/pixtral-12b", "unknown"),
    ("not-claude", "unknown"),
    ("my-gpt-4", "unknown"),
]


@pytest.mark.parametrize(("model", "family"), FAMILIES)
def test_a_model_belongs_to_the_family_of_its_name(model: str, family: str) -> None:
    assert CapabilityTable.load().row(model).family == family


def test_each_family_places_the_files_of_results() -> None:
    table = CapabilityTable.load()
    names = ("gemini-3-pro", "gemini-2.5-pro", "gpt-4o", "claude-3", "x")
    rows = [table.row(name) for name in names]
    assert [row.results for row in rows] == ["nested", "siblings", "message", "nested", "siblings"]
    assert [row.litellm for row in rows] == ["message", "message", "message", "native", "message"]
    assert not any("image/bmp" in row.accepts or "image/*" in row.accepts for row in rows)
    assert not any("audio/*" in row.nested or "video/*" in row.nested for row in rows)


@pytest.mark.parametrize("model", ["house-vision-1", "azure/my-deployment", "my-gpt-4", ""])
def test_an_unknown_model_has_files_beside_the_response(model: str) -> None:
    row = CapabilityTable.load().row(model)
    assert (row.family, row.results, row.nested) == ("unknown", "siblings", ())
    assert not any(nests_media(model, route) for route in get_args(Route))


def test_the_files_of_every_request_are_bounded_in_all() -> None:
    rows = [CapabilityTable.load().row(model) for model, _ in FAMILIES]
    assert all(0 < row.max_total_bytes <= 50_000_000 for row in rows)
    assert all(row.max_file_bytes <= 20 * 2**20 for row in rows)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("projects/p/locations/l/endpoints/1", ""),
        ("tunedModels/x", ""),
        ("a/b/Model-1@2025-01-01", "model-1"),
        ("ft:gpt-4o:org::id", "ft:gpt-4o:org::id"),
    ],
)
def test_a_name_is_compared_without_provider_path_and_version(model: str, name: str) -> None:
    assert normalise_model_name(model) == name


def test_a_users_table_takes_precedence(tmp_path: Path) -> None:
    path = tmp_path / "table.yaml"
    path.write_text(
        """
rows:
  - family: mine
    models: ['gemini-3-pro', 'house-.*']
    results: siblings
    accepts: [image/png]
aliases: {fast: house-1, gemini-flash-latest: gemini-3.5-flash}
"""
    )
    table = CapabilityTable.load(str(path))
    assert table.row("models/gemini-3-pro").family == "mine"
    assert table.row("gemini-3-flash").family == "gemini-3"
    assert table.row("vendor/house-7b").family == "mine"
    assert table.row("FAST").family == "mine"
    assert table.row("gemini-flash-latest").family == "gemini-3"
    assert table.row("else").family == "unknown"


def test_a_json_table_can_set_the_unknown_row(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"unknown": {"family": "none", "accepts": []}}))
    assert CapabilityTable.load(str(path)).row("else").family == "none"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rows: [{family: a, models: ['(']}]", "rows.0.models.0"),
        ("rows: [{family: a, colour: blue}]", "rows.0.colour"),
        ("rows: [{models: ['a']}]", "rows.0.family"),
        ("rows: [{family: a, results: anywhere}]", "rows.0.results"),
        ("rows: [{family: a, max_side: 0}]", "rows.0.max_side"),
        ("rows: 7", "rows"),
        ("7", "its top"),
        ("a: [", "is not YAML or JSON"),
        (None, "cannot be read"),
    ],
)
def test_an_invalid_table_is_refused_in_one_sentence(
    tmp_path: Path, text: str | None, said: str
) -> None:
    path = tmp_path / "table.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"\.$") as caught:
        CapabilityTable.load(str(path))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
