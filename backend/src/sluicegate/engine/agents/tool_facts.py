"""What one tool of the user's agent is: whether it asks a person, and what the wire says of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from sluicegate.adk_private import confirmation_setting, declaration_of
from sluicegate.core.signals import ToolFacts
from sluicegate.engine.agents.code_names import find_name
from sluicegate.tools.client_tools import ClientTool, GatedClientTool
from sluicegate.tools.functions import TypedTool
from sluicegate.tools.gated import terms_of

if TYPE_CHECKING:
    from google.adk.tools.base_toolset import BaseToolset

    from sluicegate.core.signals import ToolKind

ASKING: Final = "request_confirmation"
"""The method of ADK's ToolContext by which a tool asks in the middle of its run."""

AskCondition: TypeAlias = Literal["never", "sometimes", "always"]

_GENERIC_CLASSES: Final = frozenset({"BaseTool", "FunctionTool", "McpTool", "object", "ABC"})
"""Classes whose own code asks only when ``require_confirmation`` says so."""


@dataclass(frozen=True, slots=True)
class ToolNames:
    """The settings that correct what detection sees (names of tools, as the model calls them)."""

    dynamic_gates: Collection[str] = ()
    never_gates: Collection[str] = ()
    client_tools: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a tool asks: ``kind`` for the wire, ``asks`` what ADK will do, ``why`` a sentence.

    They differ for ``never_gates``: the kind is ``free`` then, but a tool that declares
    ``require_confirmation=True`` still asks in ADK, and the engine treats that as an unforeseen
    gate.
    """

    kind: ToolKind
    asks: AskCondition
    why: str = ""


def judge(tool: BaseTool, names: ToolNames, *, around: Judgement | None = None) -> Judgement:
    """Say whether ``tool`` asks a person before it runs.

    ``around`` is what surrounds the tool and may ask in its place: its toolset's confirmation
    setting, or a callback of its agent that names ``request_confirmation``.
    """
    asks, why = _declared(tool)
    if asks == "never" and around is not None:
        asks, why = around.asks, around.why
    if asks == "never" and tool.name in names.dynamic_gates:
        asks, why = "sometimes", "The setting dynamic_gates names it."
    if isinstance(tool, ClientTool) or tool.name in names.client_tools:
        return Judgement("gated-client" if asks != "never" else "client", asks, why)
    if asks == "never" or tool.name in names.never_gates:
        return Judgement("free", asks, why)
    return Judgement("gated" if asks == "always" else "conditional", asks, why)


def toolset_judgement(toolset: BaseToolset) -> Judgement | None:
    """What a toolset's confirmation setting says of its tools (``McpToolset``), None without."""
    asks, _ = _setting(toolset)
    name = type(toolset).__name__
    if asks == "always":
        return Judgement("gated", asks, f"Its toolset {name} sets require_confirmation=True.")
    if asks == "sometimes":
        return Judgement("conditional", asks, f"Its toolset {name} decides per call.")
    return None


def asking_callback(callbacks: Iterator[object], owner: str) -> Judgement | None:
    """A callback around tools that names ``request_confirmation``, None without one."""
    for callback in callbacks:
        where = find_name(callback, ASKING)
        if where is not None:
            return Judgement("conditional", "sometimes", f"{owner} names {ASKING} in {where}.")
    return None


def facts_of(tool: BaseTool, kind: ToolKind) -> ToolFacts:
    """What the wire says of a tool (T7).

    Read from ``custom_metadata``: ``title``, ``toolMetadata`` and the terms of its gate; from the
    declaration the JSON schema of the arguments. What runs in the browser is the browser's to
    change, and each of its calls goes there after a yes of its own. Arguments that nothing is
    known of cannot be changed, since nothing could be checked.
    """
    said: Mapping[str, Any] = tool.custom_metadata or {}
    title, metadata = said.get("title"), said.get("toolMetadata")
    terms = terms_of(tool)
    is_ours = kind not in ("client", "gated-client")
    schema = schema_of(tool)
    return ToolFacts(
        kind=kind,
        title=title if isinstance(title, str) else None,
        metadata=metadata if isinstance(metadata, Mapping) else None,
        schema=schema,
        editable=terms.editable and is_ours and schema is not None,
        rememberable=terms.rememberable and is_ours,
        expires=terms.expires,
    )


def schema_of(tool: BaseTool) -> dict[str, Any] | None:
    """JSON schema of the arguments as the model sees it; None for a tool without declaration."""
    try:
        declaration = declaration_of(tool)
    except Exception:  # noqa: BLE001 - annotations are the user's and may raise anything;
        # ADK raises the same at the first model call, where the turn reports it.
        return None
    if declaration is None:
        return None
    schema = declaration.parameters_json_schema
    if isinstance(schema, dict):
        return schema
    if isinstance(declaration.parameters, types.Schema):
        converted = declaration.parameters.json_schema
        return converted.model_dump(mode="json", exclude_none=True, by_alias=True)
    return {"type": "object", "properties": {}}


def as_tool(entry: Callable[..., Any] | BaseTool) -> BaseTool:
    """An entry of ``LlmAgent.tools`` as ADK calls it: plain functions become function tools."""
    return entry if isinstance(entry, BaseTool) else FunctionTool(entry)


def _declared(tool: BaseTool) -> tuple[AskCondition, str]:
    if isinstance(tool, ClientTool):
        gated = isinstance(tool, GatedClientTool)
        return ("always", "It declares require_confirmation=True.") if gated else ("never", "")
    asks, why = _setting(tool)
    if asks != "never":
        return asks, why
    if _overrides_the_check(tool):
        return "sometimes", f"Its class {type(tool).__name__} overrides check_require_confirmation."
    where = next(filter(None, (find_name(code, ASKING) for code in _code(tool))), None)
    if where is not None:
        return "sometimes", f"Its code names {ASKING} in {where}."
    return "never", ""


def _setting(owner: BaseTool | BaseToolset) -> tuple[AskCondition, str]:
    setting = confirmation_setting(owner)
    if callable(setting):
        where = getattr(setting, "__name__", type(setting).__name__)
        return "sometimes", f"Its require_confirmation is decided per call by {where}."
    return ("always", "It declares require_confirmation=True.") if setting else ("never", "")


def _overrides_the_check(tool: BaseTool) -> bool:
    if "check_require_confirmation" in vars(tool):
        return True
    owner = next(base for base in type(tool).__mro__ if "check_require_confirmation" in vars(base))
    if owner is TypedTool:
        return False
    return not (owner.__name__ in _GENERIC_CLASSES and owner.__module__.startswith("google.adk."))


def _code(tool: BaseTool) -> Iterator[object]:
    """The code that runs when the tool is called: its function, its class, what it holds."""
    yield getattr(tool, "func", None)
    for base in type(tool).__mro__:
        if base.__name__ not in _GENERIC_CLASSES:
            for member in list(vars(base).values()):
                yield getattr(member, "__func__", member)
    for name, value in list(vars(tool).items()):
        if name != "func" and isinstance(value, Callable | functools.partial):  # type: ignore[arg-type]
            yield value
