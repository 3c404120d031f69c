"""Scripts for models: responses as short calls, and the model that plays them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sluicegate.replay import ScriptedModel, parse_scenarios

Responses = Sequence[Mapping[str, Any]]
"""Responses of a scenario file, in order."""


def says(*texts: str, **more: Any) -> dict[str, Any]:
    """Return a response of texts; ``more`` are further fields of a scripted response."""
    return {"parts": [{"text": text} for text in texts], **more}


def calls(*named: tuple[str, dict[str, Any]], text: str = "", **more: Any) -> dict[str, Any]:
    """Return a response of calls, ``(name, arguments)`` each, perhaps after a text."""
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    parts.extend({"call": {"name": name, "args": args}} for name, args in named)
    return {"parts": parts, **more}


def scripted_model(
    script: Responses | Mapping[str, Responses],
    *,
    sleep: Callable[[float], Any] = asyncio.sleep,
    model: str = "scripted",
) -> ScriptedModel:
    """Return a model that plays responses in order, for any message of the user.

    With a mapping, the first key that is found in the last message chooses the responses. ``model``
    is the name of the model, ``sleep`` is awaited between deltas.

    Raises:
        ScenarioError: A response cannot be played.
    """
    by_text = script if isinstance(script, Mapping) else {"": script}
    scenarios = [{"match": text, "responses": list(said)} for text, said in by_text.items()]
    return ScriptedModel(
        scenarios=parse_scenarios({"scenarios": scenarios}), sleep=sleep, model=model
    )
