"""Agents that a model calls as tools, and that run in the session of the chat.

ADK gives an `AgentTool` a session of its own and discards it, with every approval in it. Where a
tool inside it may wait, the copy of the tree has an `InlineAgentTool` instead, which runs the agent
as a node in the caller's session, as ADK runs a ``single_turn`` sub-agent. The agent gets the same
requests as from `AgentTool`, and the chat shows of it only the calls that wait.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from google.adk.events.event import Event
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from pydantic import BaseModel, ValidationError

from sluicegate.adk_private import interrupt, invocation_of
from sluicegate.engine.agents.concurrent_calls import others_end_first

if TYPE_CHECKING:
    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.llm_agent import LlmAgent
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.tool_context import ToolContext


class InlineAgentTool(AgentTool):
    """Runs an agent as a node of the caller's run, on a branch for each call.

    ``runs`` is that agent.
    """

    runs: BaseAgent

    def __init__(self, agent: BaseAgent, *settings: Any, **more: Any) -> None:
        super().__init__(agent, *settings, **more)
        self.runs = agent

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Run the agent to its end; returns its output.

        A call inside it that waits ends the run; a later run of the same call continues there.
        """
        try:
            node_input = self._input(args)
        except ValidationError as error:
            return f"Error validating input: {error}"
        run = invocation_of(tool_context)
        # ADK: the results of a call are read on the branch of its tool.
        call_id = tool_context.function_call_id or ""
        own = f"{self.agent.name}@{call_id}"
        branch = f"{run.branch}.{own}" if run.branch else own
        events = run.session.events
        # ADK: a step in which a call waits has no results, so all its calls are made again.
        last = _last_answer(events, branch)
        if last is not None:
            output = _output_of(last)
        else:
            async with others_end_first(tool_context):
                output = await self._run(node_input, branch, call_id, tool_context)
                if output is None and (waiting := _waiting_below(events, branch)):
                    interrupt(tool_context, waiting)
        said = [event for event in events if event.branch == branch and event.author != "user"]
        return self._result(output, said, tool_context)

    async def _run(
        self, node_input: Any, branch: str, call_id: str, tool_context: ToolContext
    ) -> Any:
        """Run the node, or go on with it; returns its output, None also if it waits."""
        events = invocation_of(tool_context).session.events
        # ADK: a node that is resumed does not get its input again, so the agent would see the
        # user's message instead.
        restored = _restored_input(events, branch, node_input)
        try:
            return await tool_context.run_node(
                self.runs,
                node_input=node_input,
                # ADK: without an id, a later call of a resumed run continues an earlier one. The
                # id of the call itself is that of generator tools, whose events are progress.
                run_id=f"of-{call_id}",
                override_branch=branch,
                use_sub_branch=False,
            )
        finally:
            events[:] = [event for event in events if event is not restored]

    def _input(self, args: dict[str, Any]) -> Any:
        """The input of the node.

        Raises:
            ValidationError: the arguments do not have the input schema of the agent.
        """
        schema = _input_schema_of(self.agent)
        return args.get("request") if schema is None else schema.model_validate(args)

    def _result(self, output: Any, said: list[Event], context: ToolContext) -> Any:
        """The result of the call, from the output of the node and the agent's events."""
        return output


class CalledAgentTool(InlineAgentTool):
    """An `InlineAgentTool` in place of an `AgentTool`, with its input, result and settings.

    ``agent`` is the user's, as which it is declared; ``runs`` is the copy that runs.
    """

    def __init__(self, tool: AgentTool, runs: LlmAgent) -> None:
        super().__init__(
            tool.agent,
            tool.skip_summarization,
            include_plugins=tool.include_plugins,
            propagate_grounding_metadata=tool.propagate_grounding_metadata,
        )
        self.runs = runs

    def _input(self, args: dict[str, Any]) -> Any:
        schema = _input_schema_of(self.agent)
        if schema is not None:
            return schema.model_validate(args).model_dump_json(exclude_none=True)
        request = args.get("request")
        return request or json.dumps(args, ensure_ascii=False, sort_keys=True)

    def _result(self, output: Any, said: list[Event], context: ToolContext) -> Any:
        if self.skip_summarization:
            context.actions.skip_summarization = True
        last = next((event for event in reversed(said) if event.content), None)
        if self.propagate_grounding_metadata and last is not None and last.grounding_metadata:
            context.state["temp:_adk_grounding_metadata"] = last.grounding_metadata
        parts = last.content.parts if last is not None and last.content is not None else None
        text = "\n".join(filter(None, map(_text_of, parts or ())))
        errors = (event.error_message for event in reversed(said) if event.error_message)
        if not text:
            return next(errors, "")
        return text if self.agent.output_schema is None else output


def called_inline(tool: AgentTool, agent: LlmAgent) -> CalledAgentTool:
    """Return the tool that replaces an `AgentTool`; ``agent`` is the copy of its agent."""
    agent.mode = "single_turn"
    # It is no agent to transfer to or from, although it stands below the caller.
    agent.disallow_transfer_to_parent = agent.disallow_transfer_to_peers = True
    # ADK: it leaves a single_turn agent without the line that an AgentTool's agent has.
    agent.before_model_callback = [_add_identity, *agent.canonical_before_model_callbacks]
    # Its input is checked by the tool, and reaches it as the text that an AgentTool sends.
    agent.input_schema = None
    return CalledAgentTool(tool, agent)


def _add_identity(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
    agent = invocation_of(callback_context).agent
    if agent is None:
        return
    line = f'You are an agent. Your internal name is "{agent.name}".'
    if agent.description:
        line += f' The description about you is "{agent.description}".'
    llm_request.append_instructions([line])


def _input_schema_of(agent: BaseAgent) -> type[BaseModel] | None:
    schema = agent.input_schema
    return schema if isinstance(schema, type) and issubclass(schema, BaseModel) else None


def _waiting_below(events: list[Event], branch: str) -> set[str]:
    """The calls on a branch, and below it, that wait for an answer."""
    waiting: set[str] = set()
    for event in events:
        if _is_on(event, branch):
            waiting |= event.long_running_tool_ids or set()
        waiting.difference_update(each.id or "" for each in event.get_function_responses())
    return waiting


def _last_answer(events: list[Event], branch: str) -> Event | None:
    """The event with which the agent on a branch has ended; None if it has not ended."""
    last = next((event for event in reversed(events) if _is_on(event, branch)), None)
    if last is None or last.author == "user" or last.branch != branch:
        return None
    return last if last.is_final_response() and not _waiting_below(events, branch) else None


def _output_of(last: Event) -> Any:
    """The output of an agent that has ended with an event."""
    if last.output is not None or not last.node_info.message_as_output:
        return last.output
    parts = last.content.parts if last.content is not None else None
    return "".join(part.text for part in parts or () if part.text and not part.thought)


def _is_on(event: Event, branch: str) -> bool:
    return event.branch == branch or (event.branch or "").startswith(f"{branch}.")


def _restored_input(events: list[Event], branch: str, node_input: Any) -> Event | None:
    """Put the request before the first event of a branch; None if the branch is new."""
    index = next((index for index, event in enumerate(events) if _is_on(event, branch)), None)
    if index is None:
        return None
    first = events[index]
    text = node_input.model_dump_json() if isinstance(node_input, BaseModel) else str(node_input)
    restored = Event(
        author="user",
        branch=branch,
        isolation_scope=first.isolation_scope,
        content=types.Content(role="user", parts=[types.Part(text=text)]),
    )
    restored.node_info.path = first.node_info.path
    events.insert(index, restored)
    return restored


def _text_of(part: types.Part) -> str:
    """The text of a part for the caller, with code and its output, as `AgentTool` reads it."""
    if part.thought:
        return ""
    if part.text:
        return part.text
    if part.code_execution_result and part.code_execution_result.output:
        return part.code_execution_result.output.rstrip("\n")
    if part.executable_code and part.executable_code.code:
        return part.executable_code.code
    return ""
