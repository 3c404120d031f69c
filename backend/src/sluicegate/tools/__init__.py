"""Tools of an agent: client-side tools, tools that require approval, typed functions, workers."""

from google.genai.types import GoogleSearch

from sluicegate.tools.approval_terms import ApprovalTerms, GatedCall, Policy, terms_of
from sluicegate.tools.approvers import Approvers, Role
from sluicegate.tools.client_tools import ClientTool, client_tool
from sluicegate.tools.current_approval import Approval, approval_of
from sluicegate.tools.function_tools import DeclaredFunction, TypedTool, declare, typed_tool
from sluicegate.tools.gated import gated
from sluicegate.tools.preview_content import Diff, Image, Preview
from sluicegate.tools.strict_genai import (
    FunctionCall,
    FunctionDeclaration,
    FunctionResponse,
    Part,
    Schema,
    Tool,
)
from sluicegate.tools.tools_from_declarations import HandledTool, declared_tool, declared_tools
from sluicegate.tools.worker_call_metadata import WorkerCall, worker_call

__all__ = [
    "Approval",
    "ApprovalTerms",
    "Approvers",
    "ClientTool",
    "DeclaredFunction",
    "Diff",
    "FunctionCall",
    "FunctionDeclaration",
    "FunctionResponse",
    "GatedCall",
    "GoogleSearch",
    "HandledTool",
    "Image",
    "Part",
    "Policy",
    "Preview",
    "Role",
    "Schema",
    "Tool",
    "TypedTool",
    "WorkerCall",
    "approval_of",
    "client_tool",
    "declare",
    "declared_tool",
    "declared_tools",
    "gated",
    "terms_of",
    "typed_tool",
    "worker_call",
]
