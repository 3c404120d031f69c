"""Facts of one tool: what the wire carries of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from google.adk.tools.authenticated_function_tool import AuthenticatedFunctionTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool

from sluicegate.core.bounded_schema_structure import unusable_pattern
from sluicegate.core.tool_facts import ToolFacts
from sluicegate.engine.agents.approval_requirements import NO_NAMES, ToolNames
from sluicegate.engine.agents.code_inspection import find_name
from sluicegate.engine.agents.tool_declarations import definition_of, is_of_mcp_server, schema_of
from sluicegate.tools.approval_terms import terms_of

if TYPE_CHECKING:
    from sluicegate.core.tool_facts import ToolKind
    from sluicegate.tools.approval_terms import ApprovalTerms

_ASKS_FOR_CONSENT: Final = "request_credential"


def facts_of(tool: BaseTool, kind: ToolKind, names: ToolNames = NO_NAMES) -> ToolFacts:
    """Return what the wire carries of a tool (T7).

    ``title``, ``toolMetadata`` and the approval terms come from ``custom_metadata``, the JSON
    schema of the arguments from the declaration. Approvals of client-side tools are neither
    editable nor rememberable: the browser may change the call itself, and each call needs its own
    approval. Without a schema edits could not be checked, so there are none. A tool that another
    process declares is rememberable only if its author or the settings say so.
    """
    custom: Mapping[str, Any] = tool.custom_metadata or {}
    title, metadata = custom.get("title"), custom.get("toolMetadata")
    terms = terms_of(tool)
    runs_here = kind not in ("client", "gated-client")
    schema = schema_of(tool)
    return ToolFacts(
        kind=kind,
        title=title if isinstance(title, str) else None,
        metadata=metadata if isinstance(metadata, Mapping) else None,
        schema=schema,
        editable=terms.editable and runs_here and schema is not None,
        rememberable=_is_rememberable(tool, terms, names) and runs_here,
        expires=terms.expires,
        definition_hash=_hash_of_declared(tool),
        by_voice=terms.by_voice,
        respond=terms.respond,
    )


def _hash_of_declared(tool: BaseTool) -> str | None:
    definition = definition_of(tool) if is_of_mcp_server(tool) else None
    return None if definition is None else definition.digest


def _is_rememberable(tool: BaseTool, terms: ApprovalTerms, names: ToolNames) -> bool:
    if terms.rememberable is not None:
        return terms.rememberable
    return not is_of_mcp_server(tool) or tool.name in names.rememberable_tools


def unusable_pattern_of(tool: BaseTool) -> str | None:
    """Return why a tool cannot be offered: a pattern of its schema has no linear-time engine.

    Arguments that an approver edits are checked with the schema, which a person or a model fills.
    """
    schema = schema_of(tool)
    why = None if schema is None else unusable_pattern(schema)
    return None if why is None else f"its schema cannot be used: {why}"


def as_tool(entry: Callable[..., Any] | BaseTool) -> BaseTool:
    """Return an entry of ``LlmAgent.tools`` as ADK calls it: functions become function tools."""
    return entry if isinstance(entry, BaseTool) else FunctionTool(entry)


def asks_for_consent(tool: BaseTool) -> bool:
    """Whether a tool may ask the user for a consent at a provider."""
    is_adks = isinstance(tool, AuthenticatedFunctionTool)
    return is_adks or find_name(tool, _ASKS_FOR_CONSENT) is not None
