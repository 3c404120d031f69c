"""The questions of a worker's call as confirmations of ADK, each with what the call resumes by.

A question is asked as any later question of a tool (``docs/decisions/0026``): the tool requests
another confirmation, whose payload is the form. What the next run of the tool needs is stored with
the form, so that a restart loses nothing: the state of a stateless worker and the answers so far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from mcp import types as mcp

from sluicegate.core.confirmation_payload_form import empty_form, form_in
from sluicegate.core.schema_validation import compile_schema
from sluicegate.errors import ToolError, UnusableSchema
from sluicegate.tools.mcp_message_filter import NO_URLS, REFUSED
from sluicegate.tools.worker_names import shown_name

if TYPE_CHECKING:
    from google.adk.tools.tool_context import ToolContext

    from sluicegate.core.confirmation_payload_form import Form

_MAX_MESSAGE: Final = 2_000
_FIELDS: Final = frozenset({"string", "number", "integer", "boolean", "array"})
_HELD: Final = "held"


@dataclass(frozen=True, slots=True)
class Question:
    """A form that a worker asks for. ``name`` is the worker's id of it."""

    name: str
    message: str
    schema: dict[str, Any]

    def form(self, state: Any = None) -> Form:
        """Return the form without answers.

        Raises:
            UnusableSchema: It has something else than fields for texts, numbers, truth values and
                choices, or cannot be checked.
        """
        form = empty_form(self.schema, state)
        for name, field in self.schema["properties"].items():
            if not isinstance(field, dict) or field.get("type") not in _FIELDS:
                raise UnusableSchema(f"the field {shown_name(name)} is no simple one")
        compile_schema(self.schema)
        return form


Given: TypeAlias = tuple[tuple[Question, dict[str, Any]], ...]
"""Answered questions, in order."""


@dataclass(frozen=True, slots=True)
class WorkerQuestions:
    """What a call has asked for: the open questions, the first of which is asked, and the answers.

    ``is_held``: the worker waits for the answer with its connection open, and has no state.
    ``given`` are the answers of a held call, in order, which answer the same questions if the call
    is made again.
    """

    open: tuple[Question, ...]
    responses: dict[str, dict[str, Any]]
    request_state: str | None = None
    is_held: bool = False
    given: Given = ()

    @classmethod
    def held(cls, params: mcp.ElicitRequestFormParams, given: Given) -> WorkerQuestions:
        """Return the question of a call that is held."""
        question = Question(_HELD, params.message, params.requested_schema)
        return cls((question,), {}, is_held=True, given=given)

    @classmethod
    def required(cls, worker: str, result: mcp.InputRequiredResult) -> WorkerQuestions:
        """Return the questions that a call has ended with.

        Raises:
            ToolError: It needs something else than forms.
        """
        asked = []
        for name, request in (result.input_requests or {}).items():
            refusal = REFUSED.get(request.method)
            params = request.params
            if refusal is None and not isinstance(params, mcp.ElicitRequestFormParams):
                refusal = NO_URLS
            if refusal is not None or not isinstance(params, mcp.ElicitRequestFormParams):
                raise ToolError(f"Not finished by the worker {worker}: {refusal}")
            asked.append(Question(name, params.message, params.requested_schema))
        return cls(tuple(asked), {}, result.request_state)

    def answered(self, answer: dict[str, Any]) -> WorkerQuestions:
        """Return the questions after an answer to the first one."""
        first, *others = self.open
        given = (*self.given, (first, answer)) if self.is_held else self.given
        responses = {**self.responses, first.name: answer}
        return replace(self, open=tuple(others), responses=responses, given=given)

    def ask(self, worker: str, context: ToolContext) -> dict[str, Any]:
        """Request the confirmation of the first question; returns the placeholder of the call.

        Raises:
            UnusableSchema: The form cannot be shown or checked.
        """
        question = self.open[0]
        form = question.form(self._as_json())
        message = shown_name(question.message, _MAX_MESSAGE) or "Please fill in this form."
        context.request_confirmation(
            hint=f"The worker {worker} asks: {message}", payload=form.as_payload()
        )
        return {"status": "waiting", "result": "The user has been asked for input."}

    def input_responses(self) -> dict[str, mcp.ElicitResult]:
        """Return the answers for the worker."""
        return {name: accepted(answer) for name, answer in self.responses.items()}

    def _as_json(self) -> dict[str, Any]:
        return {
            "open": [_as_json(question) for question in self.open],
            "responses": self.responses,
            "requestState": self.request_state,
            "held": self.is_held,
            "given": [[_as_json(question), answer] for question, answer in self.given],
        }


def answered_questions(context: ToolContext) -> WorkerQuestions | None:
    """Return the questions after the answer that resumes a call; None for a call that begins."""
    confirmation = context.tool_confirmation
    form = None if confirmation is None else form_in(confirmation.payload)
    state: Any = None if form is None else form.state
    if form is None or not isinstance(state, dict):
        return None
    questions = WorkerQuestions(
        tuple(Question(**each) for each in state["open"]),
        state["responses"],
        state["requestState"],
        state["held"],
        tuple((Question(**asked), answer) for asked, answer in state["given"]),
    )
    return questions.answered(form.answer)


def accepted(answer: dict[str, Any]) -> mcp.ElicitResult:
    """Return an answer as MCP writes it."""
    return mcp.ElicitResult(action="accept", content=answer)


def _as_json(question: Question) -> dict[str, Any]:
    return {"name": question.name, "message": question.message, "schema": question.schema}
