"""What stands in an ADK event, read by attribute and named in the translator's own words.

Rule: reading never raises, whatever a plugin or an agent of one's own put into the event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sluicegate.core.exchanges import METADATA_KEY, transcript
from sluicegate.core.json_values import json_safe
from sluicegate.wire.files import UNKNOWN_TYPE, StoredFile, parse_file_uri

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from google.adk.events.event import Event
    from google.genai import types
    from pydantic import JsonValue

CONFIRMATION: Final = "adk_request_confirmation"
INPUT: Final = "adk_request_input"
CREDENTIAL: Final = "adk_request_credential"
TRANSFER: Final = "transfer_to_agent"
NODE_CONFIRMATION: Final = "wf_tool_confirmation:"
"""How the id of an `INPUT` call begins that asks about a tool node of a Workflow."""
ABORTED: Final = "INVOCATION_ABORTED"


@dataclass(frozen=True, slots=True)
class TextContent:
    """A piece of text, or of a thought."""

    thought: bool
    text: str


@dataclass(frozen=True, slots=True)
class WholeCall:
    """A function call with all its arguments; ``id`` is ADK's."""

    id: str
    name: str
    args: JsonValue


@dataclass(frozen=True, slots=True)
class Media:
    """A file by its URL; ``title`` is what its author or the user calls it."""

    url: str
    media_type: str
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Code:
    """Code the model wrote to be run; ``language`` in lower case."""

    language: str
    code: str


@dataclass(frozen=True, slots=True)
class CodeOutput:
    """What the code gave; ``outcome`` is one of ADK's ``OUTCOME_…``."""

    outcome: str
    output: str


Shown: TypeAlias = TextContent | Media | Code | CodeOutput
Content: TypeAlias = Shown | WholeCall


def attribute(source: object, *names: str) -> Any:
    """Follow attributes or keys; None where there is none."""
    for name in names:
        found = source.get(name) if isinstance(source, dict) else getattr(source, name, None)
        source = found
    return source


def parts_of(event: object) -> Sequence[Any]:
    """The content parts of an event."""
    parts = getattr(getattr(event, "content", None), "parts", None)
    return parts if isinstance(parts, list | tuple) else ()


def contents_of(event: object, files_url: str) -> list[Content]:
    """What the model said in one whole event, in order.

    Calls that are ADK's own business are left out: transfers, confirmations, credentials.
    """
    found = [item for part in parts_of(event) for item in _contents(part, files_url)]
    spoken = transcript(attribute(event, "output_transcription"))
    return [TextContent(thought=False, text=spoken), *found] if spoken else found


def contents_of_piece(part: object, files_url: str) -> Iterator[Shown]:
    """What stands in a part of a partial event, but for function calls."""
    for item in _contents(part, files_url):
        if not isinstance(item, WholeCall):
            yield item


def _contents(part: object, files_url: str) -> Iterator[Content]:
    said = attribute(part, "text")
    if said and isinstance(said, str):
        yield TextContent(bool(attribute(part, "thought")), said)
    call = attribute(part, "function_call")
    if call is not None and is_shown(call):
        yield WholeCall(text(call, "id"), text(call, "name"), arguments_of(call))
    code = attribute(part, "executable_code")
    if code is not None:
        yield Code(_word(attribute(code, "language")).lower() or "python", text(code, "code"))
    result = attribute(part, "code_execution_result")
    if result is not None:
        yield CodeOutput(_word(attribute(result, "outcome")), text(result, "output"))
    file = media_in(part, files_url)
    if file is not None:
        yield file


def is_shown(call: object) -> bool:
    """Whether a function call is a tool call in the eyes of the user."""
    name = text(call, "name")
    if not name or name in (TRANSFER, CONFIRMATION, CREDENTIAL):
        return False
    return not (name == INPUT and text(call, "id").startswith(NODE_CONFIRMATION))


def arguments_of(call: object) -> dict[str, JsonValue]:
    """The arguments of a function call as JSON."""
    args = json_safe(attribute(call, "args"))
    return args if isinstance(args, dict) else {}


def calls_of(event: object) -> list[Any]:
    """Every function call of an event."""
    return _all_of(event, "function_call")


def responses_of(event: object) -> list[Any]:
    """Every function response of an event."""
    return _all_of(event, "function_response")


def _all_of(event: object, name: str) -> list[Any]:
    found = (attribute(part, name) for part in parts_of(event))
    return [item for item in found if item is not None]


def media_in(part: object, files_url: str) -> Media | None:
    """The file in a part: ours by its name, somebody else's by its web address."""
    data = attribute(part, "inline_data", "data")
    if isinstance(data, bytes):
        # A piece of an answer: its whole holds a reference of the same name.
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


def media_in_output(output: JsonValue, files_url: str) -> tuple[JsonValue, list[Media]]:
    """The output of a node without its files, and the files; ADK leaves them where they are."""
    found: list[Media] = []
    rest = _without_files(output, files_url, found)
    return ({} if rest is _GONE else rest), found


_GONE: Final[Any] = object()


def _without_files(value: Any, files_url: str, found: list[Media]) -> Any:
    if isinstance(value, list):
        kept = [_without_files(item, files_url, found) for item in value]
        left = [item for item in kept if item is not _GONE]
        return left if left or not value else _GONE
    if not isinstance(value, dict):
        return value
    file = media_in(value, files_url) if set(value) == {"file_data"} else None
    if file is not None:
        found.append(file)
        return _GONE
    items = {key: _without_files(item, files_url, found) for key, item in value.items()}
    return {key: item for key, item in items.items() if item is not _GONE}


def response_parts(response: object) -> Sequence[Any]:
    """The media parts of a function response."""
    parts = attribute(response, "parts")
    return parts if isinstance(parts, list | tuple) else ()


def notes_of(event: object) -> Mapping[str, Any]:
    """What the engine and its plugin noted on an event (``Event.custom_metadata``)."""
    found = attribute(event, "custom_metadata", METADATA_KEY)
    return found if isinstance(found, Mapping) else {}


def notices_in(event: object) -> list[str]:
    """What the user is to be told beside the answer, such as that a file was not given to it."""
    found = notes_of(event).get("notices")
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def code_of(event: object) -> str:
    """ADK's ``error_code`` as a word, empty if there is none."""
    return _word(attribute(event, "error_code"))


def text(source: object, name: str) -> str:
    """An attribute that is a string, else an empty one."""
    value = attribute(source, name)
    return value if type(value) is str else (str(value) if isinstance(value, str) else "")


def _word(value: object) -> str:
    plain = getattr(value, "value", value)
    return plain if isinstance(plain, str) else ""


@dataclass(slots=True)
class Parts:
    """The parts of a fragment."""

    parts: list[types.Part]


@dataclass(slots=True)
class Fragment:
    """All that is read of a partial event; it goes on where an event of the same id began."""

    id: str
    author: str
    branch: str | None
    content: Parts
    node_info: Any
    isolation_scope: Any
    partial: bool = True


def continued(first: Event, part: types.Part) -> Fragment:
    """The next piece of the model call whose first piece came as a partial event."""
    return Fragment(
        first.id,
        first.author,
        first.branch,
        Parts([part]),
        attribute(first, "node_info"),
        attribute(first, "isolation_scope"),
    )
