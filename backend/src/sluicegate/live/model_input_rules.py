"""What the server of a live model accepts, by family; the source is Google's documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.adk.models.google_llm import Gemini
from google.adk.utils.model_name_utils import extract_model_name

from sluicegate.adk_private import is_gemini_3_live, uses_vertex

if TYPE_CHECKING:
    from google.adk.models.base_llm import BaseLlm


@dataclass(frozen=True, slots=True)
class LiveModelRules:
    """The rules for input of one live model; the defaults are those of other providers.

    ``is_google``: a call takes one response, on the connection that has issued it, and none after
    it was cancelled; histories hold text alone. ``is_gemini_3``: a history may end with the model.
    ``is_sequential``: the model is silent while a call has no response, and takes contents only as
    its initial history (Gemini 3.1). ``takes_behavior``: it takes the behavior of declarations.
    """

    is_google: bool = False
    is_gemini_3: bool = False
    is_sequential: bool = False
    takes_behavior: bool = True

    @classmethod
    def of(cls, model: BaseLlm, name: str) -> LiveModelRules:
        """Return the rules of a model, which is asked for by a name."""
        is_google = isinstance(model, Gemini)
        is_3_1 = extract_model_name(name).startswith("gemini-3.1-")
        return cls(
            is_google=is_google,
            is_gemini_3=is_gemini_3_live(name),
            is_sequential=is_google and is_3_1,
            # Vertex AI lets the model go on by default.
            takes_behavior=not (is_3_1 or uses_vertex(model)),
        )
