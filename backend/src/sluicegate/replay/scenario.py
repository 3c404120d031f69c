"""The scenario file: the responses of the scripted model, their conditions and their deltas.

The file is YAML or JSON. Its keys are documented on the models below; an unknown key is an error,
so that a misspelt one is never ignored.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import yaml
from google.genai import types
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    Strict,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from sluicegate.errors import ScenarioError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from pydantic_core import ErrorDetails

_MEDIA_TYPE: Final = r"^[\w.+-]+/[\w.+-]+$"


def _compile(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return re.compile(value)
    except re.error as fault:
        raise ValueError(f"is not a valid regular expression ({fault})") from fault


def _finish_reason(value: object) -> object:
    if isinstance(value, str):
        # The enum itself would warn and accept any value.
        known = types.FinishReason.__members__.get(value.upper())
        if known is None:
            raise ValueError("is not a finish reason the model knows")
        return known
    return value


class _ScriptModel(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, populate_by_name=True
    )


_SLOT: Final = re.compile(r"\{(?P<name>[a-z_]+)(?:=(?P<default>[^{}]*))?\}")
_NUMBER: Final = re.compile(r"\d{1,12}(\.\d{1,6})?", re.ASCII)


class ScriptedCall(_ScriptModel):
    """A function call.

    Without ``id`` each playback generates one. With ``stream`` the arguments arrive in deltas, as
    ADK's ``partial_args``; ADK's aggregate then holds every number as a float.
    """

    name: str = Field(min_length=1)
    args: dict[str, JsonValue] = Field(default_factory=dict)
    id: str | None = Field(default=None, min_length=1)
    stream: bool = False

    @model_validator(mode="after")
    def _can_be_streamed(self) -> ScriptedCall:
        if self.stream and _has_empty_container(self.args, outermost=True):
            raise ValueError("cannot be streamed, because its args hold an empty list or object")
        return self


def _has_empty_container(value: JsonValue, *, outermost: bool = False) -> bool:
    # ADK: PartialArg cannot express {} or [], so an aggregate would lose them.
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return (not value and not outermost) or any(_has_empty_container(item) for item in inner)
    return False


class ScriptedImage(_ScriptModel):
    """Inline media of the model: in the file either ``base64`` or ``file``, relative to it."""

    media_type: str = Field(pattern=_MEDIA_TYPE)
    data: Annotated[bytes, Strict()] = Field(min_length=1, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, dict) or "data" in value:
            return value
        rest = {key: item for key, item in value.items() if key not in {"base64", "file"}}
        if ("base64" in value) == ("file" in value):
            raise ValueError("needs either base64 or file")
        if "base64" in value:
            return {**rest, "data": _decoded(value["base64"])}
        return {**rest, "data": _content(value["file"], info)}


def _decoded(text: object) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except (binascii.Error, ValueError) as fault:
        raise ValueError("holds something else than base64") from fault


def _content(name: object, info: ValidationInfo) -> bytes:
    folder = info.context if isinstance(info.context, Path) else Path()
    try:
        return (folder / str(name)).read_bytes()
    except OSError as fault:
        raise ValueError(f"names the file {name}, which cannot be read") from fault


class ScriptedSource(_ScriptModel):
    """A source of the answer: a web page, or a document when ``uri`` is not http(s)."""

    uri: str = Field(min_length=1)
    title: str | None = None


class ScriptedCode(_ScriptModel):
    """Code that the provider has executed, and its output."""

    language: Literal["python", "PYTHON"] = "python"
    code: str
    result: str


class ScriptedAudio(_ScriptModel):
    """A tone, only in live conversations: PCM16 at 24 kHz."""

    tone_hz: float = Field(gt=0, lt=12_000)
    seconds: float = Field(gt=0, le=600)


class ScriptedTranscript(_ScriptModel):
    """The transcript of speech, only in live conversations."""

    role: Literal["user", "model"]
    text: str


class ScriptedPart(_ScriptModel):
    """One part of a response; exactly one of its keys is set.

    ``audio``, ``transcript`` and ``heard`` belong to live conversations; ``run_async`` ignores
    them. ``heard``, in the first response of a scenario, is the transcript of the user's audio if
    ``match`` is found in it or in the description of the audio.
    """

    text: str | None = None
    thought: str | None = None
    call: ScriptedCall | None = None
    image: ScriptedImage | None = None
    source: ScriptedSource | None = None
    code: ScriptedCode | None = None
    audio: ScriptedAudio | None = None
    transcript: ScriptedTranscript | None = None
    heard: str | None = None

    def filled(self, groups: Mapping[str, str | None]) -> ScriptedPart:
        """Return the part with the words of a message as arguments of its call."""
        if self.call is None:
            return self
        args = {name: _filled(value, groups) for name, value in self.call.args.items()}
        return self.model_copy(update={"call": self.call.model_copy(update={"args": args})})

    @model_validator(mode="after")
    def _exactly_one(self) -> ScriptedPart:
        kinds = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if not kinds:
            raise ValueError("has no kind, such as text or call")
        if len(kinds) > 1:
            raise ValueError(f"has more than one kind ({' and '.join(kinds)})")
        return self


class ScriptedUsage(_ScriptModel):
    """The tokens of one model call (T3); the total is the sum without ``cached``."""

    prompt: int = Field(default=0, ge=0)
    output: int = Field(default=0, ge=0)
    reasoning: int | None = Field(default=None, ge=0)
    cached: int | None = Field(default=None, ge=0)


class ScriptedError(_ScriptModel):
    """An error of the provider: an HTTP status and a message."""

    code: int = Field(ge=400, le=599)
    message: str


class ScriptedResponse(_ScriptModel):
    """One model call.

    ``parts`` become deltas of ``delta_chars`` characters with ``delay_ms`` between them, after
    ``wait_ms``, and one aggregate. ``error`` is raised after the parts, and no content is stored;
    ``hang`` waits after the parts until the call is cancelled. Usage is always reported, as
    providers do; ADK logs a warning for every call without it. ``interrupted`` ends the response as
    if the user had interrupted it. After ``go_away`` a live conversation has to reconnect.
    """

    parts: list[ScriptedPart] = Field(default_factory=list)
    delta_chars: int = Field(default=8, ge=1)
    delay_ms: float = Field(default=0, ge=0)
    wait_ms: float = Field(default=0, ge=0)
    usage: ScriptedUsage = ScriptedUsage()
    finish: Annotated[types.FinishReason, BeforeValidator(_finish_reason)] = types.FinishReason.STOP
    error: ScriptedError | None = None
    hang: bool = False
    interrupted: bool = False
    go_away: bool = False

    def filled(self, groups: Mapping[str, str | None]) -> ScriptedResponse:
        """Return the response with the words of a message as arguments of its calls."""
        return self.model_copy(update={"parts": [part.filled(groups) for part in self.parts]})


def sentence_response(sentence: str) -> ScriptedResponse:
    """Return a response of one sentence."""
    return ScriptedResponse(parts=[ScriptedPart(text=sentence)])


class Scenario(_ScriptModel):
    """The responses of one agent to the user texts that ``match`` is found in.

    An argument ``"{name}"`` or ``"{name=default}"`` of a call is what the group ``name`` of
    ``match`` has found, as a number if it is one.

    ``said`` is the whole text in place of ``match``. With ``nth`` the scenario applies only to the
    nth message with that text.
    """

    match: Annotated[re.Pattern[str], BeforeValidator(_compile)]
    nth: int | None = Field(default=None, ge=1)
    agent: str | None = Field(default=None, min_length=1)
    responses: list[ScriptedResponse] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _whole_text(cls, value: Any) -> Any:
        if not isinstance(value, dict) or "said" not in value:
            return value
        if "match" in value:
            raise ValueError("needs either match or said")
        rest = {key: item for key, item in value.items() if key != "said"}
        return {**rest, "match": rf"\A{re.escape(str(value['said']))}\Z"}

    @field_validator("responses", mode="before")
    @classmethod
    def _must_be_list(cls, value: object) -> object:
        if isinstance(value, dict):
            raise ValueError("should be a list, also when there is only one")
        return value

    @property
    def heard(self) -> str | None:
        """The transcript of the user's audio, None if the audio is described."""
        transcripts = (part.heard for part in self.responses[0].parts if part.heard is not None)
        return next(transcripts, None)

    def filled(self, text: str) -> Scenario:
        """Return the scenario with the words of a text as arguments."""
        found = self.match.search(text) if self.match.groupindex else None
        if found is None:
            return self
        groups = found.groupdict()
        responses = [response.filled(groups) for response in self.responses]
        return self.model_copy(update={"responses": responses})


def _filled(value: JsonValue, groups: Mapping[str, str | None]) -> JsonValue:
    slot = _SLOT.fullmatch(value) if isinstance(value, str) else None
    if slot is None or slot["name"] not in groups:
        return value
    word = groups[slot["name"]] or slot["default"] or ""
    return (float(word) if "." in word else int(word)) if _NUMBER.fullmatch(word) else word


class Scenarios(_ScriptModel):
    """All scenarios of a file; the first one that applies is played."""

    scenarios: list[Scenario] = Field(min_length=1)

    def first(
        self, text: str, agent: str | None, root: str | None, *, times: int | None = None
    ) -> Scenario | None:
        """Return the scenario for a user text and the speaking agent.

        A scenario without ``agent`` belongs to the root agent, or, if ``root`` is None, to every
        agent that no scenario names. The text of a scenario's ``heard`` selects that scenario.
        ``times`` counts the user messages with this text, where it is known.
        """
        own = [
            scenario
            for scenario in self._of(agent, root)
            if times is None or scenario.nth in (None, times)
        ]
        spoken = (scenario for scenario in own if scenario.heard == text)
        typed = (scenario for scenario in own if scenario.match.search(text))
        return next(spoken, None) or next(typed, None)

    def transcribe(self, sound: Callable[[], str], agent: str | None, root: str | None) -> str:
        """Return the transcript of the user's audio; ``sound`` describes it if that is needed."""
        for scenario in self._of(agent, root):
            if scenario.heard is not None and scenario.match.search(scenario.heard):
                return scenario.heard
            if scenario.match.search(sound()):
                return sound() if scenario.heard is None else scenario.heard
        return sound()

    def _of(self, agent: str | None, root: str | None) -> list[Scenario]:
        named = {scenario.agent for scenario in self.scenarios}
        is_root = agent == root if root is not None else agent not in named or agent is None
        return [
            scenario
            for scenario in self.scenarios
            if (is_root if scenario.agent is None else scenario.agent == agent)
        ]


def load_scenarios(path: str | os.PathLike[str]) -> Scenarios:
    """Read a scenario file: JSON if its name ends in ``.json``, else YAML.

    Raises:
        ScenarioError: The file cannot be read or played; one sentence names the file, the number
            of the scenario (from 1) and the field.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as fault:
        reason = (fault.strerror or "unknown reason").lower()
        raise ScenarioError(f"The scenario file {file} cannot be read: {reason}.") from fault
    except UnicodeDecodeError as fault:
        raise ScenarioError(f"The scenario file {file} is not UTF-8 text.") from fault
    return parse_scenarios(_decode(text, file), name=str(file), folder=file.parent)


def parse_scenarios(data: object, *, name: str = "script", folder: Path | None = None) -> Scenarios:
    """Validate scenarios that are Python objects; errors call them ``name``.

    Raises:
        ScenarioError: As for ``load_scenarios``.
    """
    try:
        return Scenarios.model_validate(data, context=folder or Path())
    except ValidationError as faults:
        raise ScenarioError(_sentence(name, faults.errors()[0])) from faults


def _decode(text: str, file: Path) -> Any:
    if file.suffix.lower() == ".json":
        try:
            return json.loads(text)
        except json.JSONDecodeError as fault:
            where = f"at line {fault.lineno}, column {fault.colno}"
            message = f"The scenario file {file} is not valid JSON {where}."
            raise ScenarioError(message) from fault
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = f" ({fault.problem})" if fault.problem else ""
        message = f"The scenario file {file} is not valid YAML{where}{problem}."
        raise ScenarioError(message) from fault
    except yaml.YAMLError as fault:
        raise ScenarioError(f"The scenario file {file} is not valid YAML.") from fault


class _StrictLoader(yaml.SafeLoader):
    """YAML without object tags and without duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        # The last of two equal keys would win silently.
        seen: set[object] = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                if key_node.value in seen and key_node.value != "<<":
                    problem = f"the key {key_node.value} stands twice"
                    raise yaml.constructor.ConstructorError(
                        None, None, problem, key_node.start_mark
                    )
                seen.add(key_node.value)
        return super().construct_mapping(node, deep)


def _sentence(name: str, fault: ErrorDetails) -> str:
    place = fault["loc"]
    if len(place) >= 2 and place[0] == "scenarios" and isinstance(place[1], int):
        where = f"In {name}, scenario {place[1] + 1}"
        field = _field(place[2:])
        return f"{where}{f', {field}' if field else ''} {predicate(fault)}."
    return f"In {name}, {_field(place) or 'the file'} {predicate(fault)}."


def _field(place: Sequence[int | str]) -> str:
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def predicate(fault: ErrorDetails) -> str:
    """Return the error of a field, as the predicate of a sentence about it."""
    match fault["type"]:
        case "extra_forbidden":
            return "is not a known key"
        case "missing":
            return "is missing"
        case "value_error":
            return str(fault["ctx"]["error"])
        case "model_type" | "model_attributes_type" | "dict_type":
            return "should be a mapping"
        case "too_short":
            return "should not be empty"
        case _:
            return fault["msg"].removeprefix("Input ").rstrip(".")
