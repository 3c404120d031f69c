"""Agents that a model calls as tools, and that run in the session of the chat.

ADK gives an `AgentTool` a session of its own and discards it, with every approval in it. Where a
tool inside it may wait, the copy of the tree has a `CalledAgentTool` instead, which runs the agent
as a node in the caller's session. The agent, and those below it, get the same requests as from
`AgentTool`, and the chat shows of them only the calls that wait.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from pydantic import BaseModel, ValidationError

from sluicegate.adk_private import invocation_of, validated
from sluicegate.adk_private_resumption import ResumableShell, run_callbacks_once
from sluicegate.engine.agents.agent_runs_in_log import CalledAgentRun
from sluicegate.engine.agents.every_turn_mark import runs_every_turn
from sluicegate.engine.agents.resumed_agent_nodes import CALLED_ROOT, resume_as_node
from sluicegate.engine.agents.wait_for_concurrent_calls import others_end_first

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.events.event import Event
    from google.adk.tools.tool_context import ToolContext


class InlineAgentTool(AgentTool):
    """Runs an agent as a node of the caller's run, on a branch for each call.

    It takes the place of ADK's tool for a ``single_turn`` sub-agent.
    """

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
        # ADK: a step in which a call waits has no results, so all its calls are made again.
        said = self._said(run.session.events, branch, call_id)
        if said and self._has_ended(said, run.session.events, branch):
            output = _output_of(said[-1])
        else:
            async with others_end_first(tool_context):
                output = await self._run(node_input, branch, call_id, tool_context)
            said = self._said(run.session.events, branch, call_id)
        return self._result(output, said, tool_context)

    async def _run(
        self, node_input: Any, branch: str, call_id: str, tool_context: ToolContext
    ) -> Any:
        """Run the node, or go on with it; returns its output, or raises if it waits."""
        return await tool_context.run_node(
            self.agent,
            node_input=node_input,
            # ADK: without an id, a later call of a resumed run continues an earlier one. The id
            # of the call itself is that of generator tools, whose events are progress.
            run_id=_run_id(call_id),
            override_branch=branch,
            use_sub_branch=False,
        )

    def _input(self, args: dict[str, Any]) -> Any:
        """The input of the node.

        Raises:
            ValidationError: the arguments do not have the input schema of the agent.
        """
        schema = _input_schema_of(self.agent)
        return args.get("request") if schema is None else schema.model_validate(args)

    def _said(self, events: list[Event], branch: str, call_id: str) -> list[Event]:
        """The events of the agent in the call."""
        return [event for event in events if event.branch == branch and event.author != "user"]

    def _has_ended(self, said: list[Event], events: list[Event], branch: str) -> bool:
        """Whether the agent has ended in an earlier run of the call."""
        last = next(event for event in reversed(events) if _is_on(event, branch))
        return last is said[-1] and last.is_final_response() and not _waiting_on(events, branch)

    def _result(self, output: Any, said: list[Event], context: ToolContext) -> Any:
        """The result of the call, from the output of the node and the agent's events."""
        return output


class CalledRoot(ResumableShell):
    """The root of a tree that is called: it begins with the request, and has no other history."""


class CalledAgentTool(InlineAgentTool):
    """An `InlineAgentTool` in place of an `AgentTool`, with its input, result and settings.

    The agent that the model is offered is the user's; ``root`` is its copy, which runs.
    """

    def __init__(self, tool: AgentTool, root: BaseAgent) -> None:
        super().__init__(
            tool.agent,
            tool.skip_summarization,
            include_plugins=tool.include_plugins,
            propagate_grounding_metadata=tool.propagate_grounding_metadata,
        )
        self.runs = CalledRoot(name=CALLED_ROOT, sub_agents=[root])
        # The tree must not notice: its root has no parent.
        root.parent_agent = None
        for agent in _that_hand_over(root):
            run_callbacks_once(agent, CalledAgentRun, runs_every_turn)
        resume_as_node(self.runs)

    async def _run(
        self, node_input: Any, branch: str, call_id: str, tool_context: ToolContext
    ) -> Any:
        return await tool_context.run_node(
            self.runs,
            node_input=types.Content(role="user", parts=[types.Part(text=node_input)]),
            run_id=_run_id(call_id),
            override_branch=branch,
            use_sub_branch=False,
        )

    def _input(self, args: dict[str, Any]) -> Any:
        schema = _input_schema_of(self.agent)
        if schema is not None:
            return schema.model_validate(args).model_dump_json(exclude_none=True)
        request = args.get("request")
        return request or json.dumps(args, ensure_ascii=False, sort_keys=True)

    def _said(self, events: list[Event], branch: str, call_id: str) -> list[Event]:
        place = f"{CALLED_ROOT}@{_run_id(call_id)}"
        return [event for event in events if f"/{event.node_info.path}".endswith(f"/{place}")]

    def _has_ended(self, said: list[Event], events: list[Event], branch: str) -> bool:
        return any(each.author == CALLED_ROOT and each.actions.end_of_agent for each in said)

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
        schema = _output_schema_of(self.agent)
        return text if schema is None else validated(schema, text)


def _that_hand_over(agent: BaseAgent) -> Iterator[LlmAgent]:
    """The agents that ADK runs as nodes in an `AgentTool`, so that a transfer ends them."""
    if isinstance(agent, LlmAgent):
        yield agent
        for each in agent.sub_agents:
            yield from _that_hand_over(each)


def _run_id(call_id: str) -> str:
    return f"of-{call_id}"


def _input_schema_of(agent: BaseAgent) -> type[BaseModel] | None:
    """The input schema of an agent, or of the first one in it."""
    if not isinstance(agent, LlmAgent):
        return _input_schema_of(agent.sub_agents[0]) if agent.sub_agents else None
    schema = agent.input_schema
    return schema if isinstance(schema, type) and issubclass(schema, BaseModel) else None


def _output_schema_of(agent: BaseAgent) -> Any:
    """The output schema of an agent, or of the last one in it."""
    if isinstance(agent, LlmAgent):
        return agent.output_schema
    return _output_schema_of(agent.sub_agents[-1]) if agent.sub_agents else None


def _waiting_on(events: list[Event], branch: str) -> set[str]:
    """The calls on a branch, and below it, that wait for an answer."""
    waiting: set[str] = set()
    for event in events:
        if _is_on(event, branch):
            waiting |= event.long_running_tool_ids or set()
        waiting.difference_update(each.id or "" for each in event.get_function_responses())
    return waiting


def _output_of(last: Event) -> Any:
    """The output of an agent that has ended with an event."""
    if last.output is not None or not last.node_info.message_as_output:
        return last.output
    parts = last.content.parts if last.content is not None else None
    return "".join(part.text for part in parts or () if part.text and not part.thought)


def _is_on(event: Event, branch: str) -> bool:
    return event.branch == branch or (event.branch or "").startswith(f"{branch}.")


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
