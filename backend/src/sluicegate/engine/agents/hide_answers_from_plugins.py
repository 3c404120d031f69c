"""Hides from plugins the messages that only answer calls, since no user has written them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.adk.plugins.plugin_manager import PluginManager

from sluicegate.engine.agents.every_turn_mark import runs_every_turn

if TYPE_CHECKING:
    from google.adk.agents.invocation_context import InvocationContext
    from google.genai import types


def hide_answers(manager: PluginManager) -> None:
    """Hide from plugins a message that only answers calls, since no user has written it.

    Callbacks that are marked see it.
    """
    run = manager.run_on_user_message_callback

    async def run_on_user_message_callback(
        *, user_message: types.Content, invocation_context: InvocationContext
    ) -> types.Content | None:
        parts = user_message.parts or []
        if not parts or not all(part.function_response for part in parts):
            return await run(user_message=user_message, invocation_context=invocation_context)
        marked = [
            each for each in manager.plugins if runs_every_turn(each.on_user_message_callback)
        ]
        return await PluginManager(marked).run_on_user_message_callback(
            user_message=user_message, invocation_context=invocation_context
        )

    vars(manager)["run_on_user_message_callback"] = run_on_user_message_callback
