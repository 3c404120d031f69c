"""Tools that an agent declares: those that somebody else runs, and those that ask a person."""

from sluicegate.tools.approval import Approval, GatedCall, Policy, approval_of
from sluicegate.tools.client_tools import ClientTool, client_tool
from sluicegate.tools.gated import GateTerms, gated, terms_of
from sluicegate.tools.worker_calls import WorkerCall, worker_call

__all__ = [
    "Approval",
    "ClientTool",
    "GateTerms",
    "GatedCall",
    "Policy",
    "WorkerCall",
    "approval_of",
    "client_tool",
    "gated",
    "terms_of",
    "worker_call",
]
