"""Reads ADK events by attribute: their contents, calls, responses, files and notes.

Rule: reading never raises, for any content that a plugin or a custom agent put into the event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.json_values import json_safe
from sluicegate.core.signals import (
    Call,
    Code,
    CodeOutput,
    Content,
    Media,
    Outcome,
    StreamedContent,
    TextContent,
)
from sluicegate.wire.media_types import UNKNOWN_TYPE
from sluicegate.wire.stored_files import StoredFile, parse_file_uri

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from google.adk.events.event import Event
    from pydantic import JsonValue

METADATA_KEY: Final = "sluicegate"
"""The key of our notes in ``Event.custom_metadata``."""

CONFIRMATION: Final = "adk_request_confirmation"
INPUT: Final = "adk_request_input"
CREDENTIAL: Final = "adk_request_credential"
TRANSFER: Final = "transfer_to_agent"
NODE_CONFIRMATION: Final = "wf_tool_confirmation:"
"""Prefix of the id of an `INPUT` call that requests approval of a tool node of a Workflow."""
ABORTED: Final = "INVOCATION_ABORTED"


def attribute(source: object, *names: str) -> Any:
    """Follow attributes or keys; None where one is missing."""
    for name in names:
        source = source.get(name) if isinstance(source, dict) else getattr(source, name, None)
    return source


def text(source: object, name: str) -> str:
    """An attribute that is a string, else an empty one."""
    value = attribute(source, name)
    return value if type(value) is str else (str(value) if isinstance(value, str) else "")


def parts_of(event: object) -> Sequence[Any]:
    """The content parts of an event."""
    parts = getattr(getattr(event, "content", None), "parts", None)
    return parts if isinstance(parts, list | tuple) else ()


def notes_of(event: object) -> Mapping[str, Any]:
    """The notes of the engine and its plugin on an event (``Event.custom_metadata``)."""
    notes = attribute(event, "custom_metadata", METADATA_KEY)
    return notes if isinstance(notes, Mapping) else {}


def notices_in(event: object) -> list[str]:
    """Notices for the user beside the answer, such as that a file was not sent to the model."""
    notices = notes_of(event).get("notices")
    return [each for each in notices if isinstance(each, str)] if isinstance(notices, list) else []


def code_of(event: object) -> str:
    """ADK's ``error_code`` as a string, empty if there is none."""
    return _enum_value(attribute(event, "error_code"))


def transcript(transcription: object) -> str:
    """The text of a transcription that is complete, else an empty string."""
    said = getattr(transcription, "text", None)
    return said if isinstance(said, str) and getattr(transcription, "finished", None) else ""


def contents_of(event: object, files_url: str) -> list[Content]:
    """The contents of a complete model response, in order.

    ADK's own calls are left out: transfers, confirmations, credentials.
    """
    contents = [content for part in parts_of(event) for content in _contents(part, files_url)]
    spoken = transcript(attribute(event, "output_transcription"))
    return [TextContent(thought=False, text=spoken), *contents] if spoken else contents


def streamed_contents_of(part: object, files_url: str) -> Iterator[StreamedContent]:
    """The contents of a part of a partial event, except function calls."""
    for content in _contents(part, files_url):
        if not isinstance(content, Call):
            yield content


def _contents(part: object, files_url: str) -> Iterator[Content]:
    said = attribute(part, "text")
    if said and isinstance(said, str):
        yield TextContent(bool(attribute(part, "thought")), said)
    call = attribute(part, "function_call")
    if call is not None and is_shown(call):
        yield Call(text(call, "id"), text(call, "name"), arguments_of(call))
    code = attribute(part, "executable_code")
    if code is not None:
        language = _enum_value(attribute(code, "language")).lower()
        yield Code(language or "python", text(code, "code"))
    result = attribute(part, "code_execution_result")
    if result is not None:
        yield CodeOutput(_enum_value(attribute(result, "outcome")), text(result, "output"))
    file = media_in(part, files_url)
    if file is not None:
        yield file


def is_shown(call: object) -> bool:
    """Whether a function call is shown to the user as a tool call."""
    name = text(call, "name")
    if not name or name in (TRANSFER, CONFIRMATION, CREDENTIAL):
        return False
    return not (name == INPUT and text(call, "id").startswith(NODE_CONFIRMATION))


def adk_calls_of(event: object) -> list[Any]:
    """The calls of an event by which ADK itself waits for the user.

    ADK marks them as long-running. It marks those of a model only if their tool is declared as
    long-running, and such names and ids are kept from models.
    """
    marked = attribute(event, "long_running_tool_ids")
    if not isinstance(marked, set | frozenset | list | tuple):
        return []
    return [call for call in calls_of(event) if text(call, "id") in marked]


def arguments_of(call: object) -> dict[str, JsonValue]:
    """The arguments of a function call as JSON."""
    args = json_safe(attribute(call, "args"))
    return args if isinstance(args, dict) else {}


def calls_of(event: object) -> list[Any]:
    """Every function call of an event."""
    return _all_of(event, "function_call")


def callers_of(event: object) -> tuple[str, ...]:
    """Return the calls of agents on whose branch an event was made, the outermost first."""
    names = text(event, "branch").split(".")
    return tuple(name.partition("@")[2] for name in names if "@" in name)


def responses_of(event: object) -> list[Any]:
    """Every function response of an event."""
    return _all_of(event, "function_response")


def _all_of(event: object, name: str) -> list[Any]:
    found = (attribute(part, name) for part in parts_of(event))
    return [item for item in found if item is not None]


def response_parts(response: object) -> Sequence[Any]:
    """The media parts of a function response."""
    parts = attribute(response, "parts")
    return parts if isinstance(parts, list | tuple) else ()


def media_in(part: object, files_url: str) -> Media | None:
    """The file in a part: a stored file under ``files_url``, any other by its web address."""
    data = attribute(part, "inline_data", "data")
    if isinstance(data, bytes):
        # Partial events hold the bytes; the aggregate holds a reference of the same name.
        media_type = text(attribute(part, "inline_data"), "mime_type") or UNKNOWN_TYPE
        return Media(files_url + StoredFile.of(data, media_type).name, media_type)
    url = text(attribute(part, "file_data"), "file_uri")
    media_type = text(attribute(part, "file_data"), "mime_type") or UNKNOWN_TYPE
    file = parse_file_uri(url, media_type)
    if file is not None:
        return Media(files_url + file.name, media_type, file.title)
    if url.startswith(("https://", "http://")):
        return Media(url, media_type)
    return None


def _enum_value(value: object) -> str:
    plain = getattr(value, "value", value)
    return plain if isinstance(plain, str) else ""


def recorded_outcome(event: object, *names: str) -> Outcome | None:
    """The outcome that the approval plugin recorded on an event under one of a call's names."""
    outcomes = attribute(notes_of(event), "outcomes")
    for name in names:
        note = attribute(outcomes, name)
        kind = attribute(note, "kind")
        if kind in ("error", "denied"):
            return Outcome(kind, text=text(note, "text"))
    return None


_REMOVED: Final[Any] = object()


def media_in_output(output: JsonValue, files_url: str) -> tuple[JsonValue, list[Media]]:
    """Split the output of a node into the output without its files, and the files.

    ADK: the files of a node's result stay in its output.
    """
    files: list[Media] = []
    rest = _without_files(output, files_url, files)
    return ({} if rest is _REMOVED else rest), files


def _without_files(value: Any, files_url: str, files: list[Media]) -> Any:
    if isinstance(value, list):
        items = [_without_files(item, files_url, files) for item in value]
        kept = [item for item in items if item is not _REMOVED]
        return kept if kept or not value else _REMOVED
    if not isinstance(value, dict):
        return value
    file = media_in(value, files_url) if set(value) == {"file_data"} else None
    if file is not None:
        files.append(file)
        return _REMOVED
    members = {key: _without_files(item, files_url, files) for key, item in value.items()}
    return {key: item for key, item in members.items() if item is not _REMOVED}


def is_user_message(event: Event) -> bool:
    """Whether this is a user's message, not a response to a call."""
    if event.author != "user":
        return False
    if transcript(event.input_transcription):
        return True
    if event.content is None or not event.content.parts:
        return False
    return not any(part.function_response for part in event.content.parts)


def user_texts(event: Event) -> list[str]:
    """The texts of a user's message, written or spoken."""
    spoken = transcript(event.input_transcription)
    parts = event.content.parts if event.content is not None else None
    return [*([spoken] if spoken else []), *(part.text for part in parts or [] if part.text)]
