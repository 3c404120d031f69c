"""A test kit for agents: a scripted model, a client without a network, and the rules as checks."""

from sluicegate.replay import ScriptedModel
from sluicegate.testing.in_process_chat_client import ChatClient, Turn, decide, open_chat
from sluicegate.testing.response_checks import (
    RuleViolation,
    check_final_response,
    check_intermediate_response,
    check_response,
)
from sluicegate.testing.scripts import calls, says, scripted_model

__all__ = [
    "ChatClient",
    "RuleViolation",
    "ScriptedModel",
    "Turn",
    "calls",
    "check_final_response",
    "check_intermediate_response",
    "check_response",
    "decide",
    "open_chat",
    "says",
    "scripted_model",
]
