"""The two models of an agent: one for turns, one for live runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.adk.models.base_llm import BaseLlm


@dataclass(frozen=True, slots=True)
class AgentModels:
    """``text`` runs the turns of an agent, ``live`` its live runs; they may be one."""

    text: BaseLlm
    live: BaseLlm
