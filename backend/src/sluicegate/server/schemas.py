"""The JSON bodies of the API as types; the schemas of the OpenAPI document are made from them."""

from functools import cache
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias

from pydantic import ConfigDict, Field, Json, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

# typing's own cannot be inspected by pydantic before Python 3.12.
from typing_extensions import TypedDict

from sluicegate.core.approvals import ApprovalState
from sluicegate.wire.limits import DEFAULT_LIMITS
from sluicegate.wire.one_line_pattern import HIDDEN, ONE_LINE

MAX_TITLE: Final = 200
"""Characters of a chat's title."""

ChatStatus: TypeAlias = Literal["ready", "running", "waiting"]

COMPONENTS: Final = "#/components/schemas/"

TITLE: Final = rf"^[^{HIDDEN}]*[^{HIDDEN}\s][^{HIDDEN}]*$"
"""The pattern of one line with a character that is no space."""


_FILE_URL: Final = (
    r"^(data:[^,]*;base64,([A-Za-z0-9+/]{4})*"
    r"([A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)|/.+)$"
)
_TOOL_PART: Final = "^(tool-|dynamic-tool$)"
_DECIDED: Final[dict[str, Any]] = {
    "required": ["state"],
    "properties": {
        "type": {"pattern": _TOOL_PART},
        "state": {"const": "approval-responded"},
    },
}
_FILES: Final[dict[str, Any]] = {
    "contains": {"required": ["type"], "properties": {"type": {"const": "file"}}},
    "minContains": 0,
    "maxContains": DEFAULT_LIMITS.files,
}
"""At most as many files as a message may have, unless the settings say otherwise."""

_CONTENT: Final[dict[str, Any]] = {
    "anyOf": [
        {
            "required": ["text"],
            # What `str.strip` leaves is not blank.
            "properties": {"type": {"const": "text"}, "text": {"pattern": r"[^\s\x1c-\x1f]"}},
        },
        {"properties": {"type": {"const": "file"}}},
    ]
}


def _without_messages(schema: dict[str, Any]) -> None:
    schema["properties"]["messages"] = False


def one_line(max_characters: int) -> dict[str, Any]:
    """The schema of a text of one line."""
    return {"type": "string", "maxLength": max_characters, "pattern": ONE_LINE}


Id = Annotated[str, Field(json_schema_extra={"pattern": r"^(?!\.{1,2}$)[A-Za-z0-9._:-]{1,128}$"})]
"""The id of a chat or of a message."""

Reason = Annotated[str, Field(max_length=DEFAULT_LIMITS.reason)]
"""The reason of a decision; the model receives that of a denial."""


class Message(TypedDict):
    """A UIMessage of the AI SDK."""

    id: str
    role: Literal["system", "user", "assistant"]
    parts: list[dict[str, Any]]
    metadata: NotRequired[dict[str, Any]]


class TextPart(TypedDict):
    """A text of a user's message."""

    type: Literal["text"]
    text: str


class FilePart(TypedDict):
    """A file of a user's message: a data URL in base64, or the URL of a file of the chat."""

    type: Literal["file"]
    url: Annotated[str, Field(json_schema_extra={"pattern": _FILE_URL})]
    mediaType: NotRequired[str]
    filename: NotRequired[Annotated[str, Field(max_length=255)] | None]


class OtherPart(TypedDict):
    """A part that is not read."""

    type: Annotated[str, Field(json_schema_extra={"not": {"enum": ["text", "file"]}})]


class UserMessage(TypedDict):
    """A message of the user: a text that is not blank, or a file."""

    id: Id
    role: Literal["user"]
    parts: Annotated[
        list[TextPart | FilePart | OtherPart],
        Field(
            max_length=DEFAULT_LIMITS.parts,
            json_schema_extra={"allOf": [{"contains": _CONTENT}, _FILES]},
        ),
    ]


class ApprovalResponse(TypedDict):
    """A decision on an approval request, as `addToolApprovalResponse` writes it."""

    id: Annotated[str, Field(min_length=1, max_length=256, json_schema_extra={"pattern": ONE_LINE})]
    approved: bool
    reason: NotRequired[Reason | None]


class DecidedPart(TypedDict):
    """A call of a tool with the decision of its approval."""

    type: Annotated[str, Field(json_schema_extra={"pattern": _TOOL_PART})]
    state: Literal["approval-responded"]
    approval: ApprovalResponse


class AnswerPart(TypedDict):
    """Any other part of an answer."""

    __pydantic_config__ = ConfigDict(json_schema_extra={"not": _DECIDED})  # type: ignore[misc]

    type: str


class AssistantMessage(TypedDict):
    """The answer that continues, with decisions and the outputs of client-side tools."""

    id: Id
    role: Literal["assistant"]
    parts: list[DecidedPart | AnswerPart]


class _ChatOptions(TypedDict):
    id: Id
    trigger: NotRequired[Literal["submit-message", "regenerate-message"]]
    messageId: NotRequired[Id | None]
    edits: NotRequired[
        Annotated[Any, Field(description="`{approvalId: arguments}`, to run with these instead.")]
    ]
    payload: NotRequired[
        Annotated[Any, Field(description="`{approvalId: payload}`, for the tool to read instead.")]
    ]
    remember: NotRequired[
        Annotated[
            Any,
            Field(description='`{approvalId: "chat" | {where?, ttl?}}`, to approve later calls.'),
        ]
    ]
    digest: NotRequired[
        Annotated[Any, Field(description="`{approvalId: digest}`, of what the approver saw.")]
    ]
    response: NotRequired[
        Annotated[Any, Field(description="`{approvalId: answer}`, in place of a denied tool.")]
    ]
    tools: NotRequired[
        Annotated[
            Any,
            Field(
                description="Tools of the page, `{NAME: {description, parameters}}`; names that "
                "the setting page_tools does not list are ignored."
            ),
        ]
    ]


class LastMessageRequest(_ChatOptions):
    """The last message only."""

    __pydantic_config__ = ConfigDict(json_schema_extra=_without_messages)  # type: ignore[misc]

    message: UserMessage | AssistantMessage


class WholeChatRequest(_ChatOptions):
    """The body of DefaultChatTransport."""

    messages: Annotated[
        list[UserMessage | AssistantMessage | dict[str, Any]],
        Field(
            min_length=1,
            description="The last one is a UserMessage or an AssistantMessage; with an "
            "AssistantMessage, the answer with the id `messageId` continues if there is one. "
            "The others are not read.",
        ),
    ]


ChatRequest = LastMessageRequest | WholeChatRequest
"""The bodies of ``POST /chat``."""


class ServerSentEvent(TypedDict):
    """An event of a stream of a turn."""

    data: Annotated[str, Field(description="A UI message chunk as JSON, or `[DONE]`.")]


class Session(TypedDict):
    """The user of a request."""

    user: Annotated[str | None, Field(description="Null on a server without authentication.")]
    canSignOut: Annotated[bool, Field(description="Whether the session of a cookie is used.")]
    demoUsers: NotRequired[
        Annotated[list[str], Field(description="The people of the demo, who need no sign-in.")]
    ]


class Chat(TypedDict):
    """A chat with its messages."""

    id: str
    title: str
    messages: list[Message]
    status: Literal["ready", "running", "waiting", "interrupted"]


class MessageVersion(TypedDict):
    """An earlier version of an answer, from its user message on."""

    version: int
    messages: list[Message]


class ChatSummary(TypedDict):
    """A chat in the list."""

    id: str
    title: str
    updatedAt: str
    pendingApprovals: int
    status: ChatStatus


class ChatPage(TypedDict):
    """One page of the list of chats."""

    chats: list[ChatSummary]
    next: str | None


class ChatTitle(TypedDict):
    """A new title of a chat."""

    title: Annotated[str, Field(max_length=MAX_TITLE, json_schema_extra={"pattern": TITLE})]


class StoredFile(TypedDict):
    """What a file part of a message says of a file, and the file's name in the path."""

    url: str
    mediaType: str
    name: str
    filename: NotRequired[str]
    notice: NotRequired[
        Annotated[str, Field(description="Why no model of the agent reads the file.")]
    ]


class Registration(TypedDict):
    """A remote tool worker that registers."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    name: str
    url: Annotated[str, Field(json_schema_extra={"format": "uri"})]


class Lease(TypedDict):
    """The registration of a remote tool worker."""

    name: str
    tools: list[str]
    lease: Annotated[float, Field(description="Seconds in which to register again.")]


class ReadyEvent(TypedDict):
    """The first event of a connection that misses nothing."""

    type: Literal["ready"]


class ResetEvent(TypedDict):
    """Events may be missing; load everything again."""

    type: Literal["reset"]


class ChatEvent(TypedDict):
    """What has changed of a chat, or a new one; fields that are left out are as before."""

    type: Literal["chat"]
    chatId: str
    status: NotRequired[Literal["ready", "running", "waiting"]]
    title: NotRequired[str | None]
    updatedAt: NotRequired[str]


class ChatDeletedEvent(TypedDict):
    """A chat was deleted."""

    type: Literal["chat.deleted"]
    chatId: str


class ApprovalEvent(TypedDict):
    """The new state of an approval."""

    type: Literal["approval"]
    chatId: str
    approvalId: str
    tool: str
    state: ApprovalState


class MessageEvent(TypedDict):
    """A user's message was accepted, or a turn of an assistant's message has ended."""

    type: Literal["message"]
    chatId: str
    messageId: str


UserEvent = ReadyEvent | ResetEvent | ChatEvent | ChatDeletedEvent | ApprovalEvent | MessageEvent
"""What an event of ``GET /events`` says."""


class UserEventMessage(TypedDict):
    """An event of the stream of a user's events."""

    id: str
    data: Json[UserEvent]


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles, which repeat the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def typed_dict_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().typed_dict_schema(schema)
        described.pop("title", None)
        return described


@cache
def schema_of(body: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of a type, and the component schemas to which it refers."""
    schema = TypeAdapter(body).json_schema(
        ref_template=COMPONENTS + "{model}", schema_generator=_Untitled
    )
    components = schema.pop("$defs", {})
    if isinstance(body, type) and schema.get("type") == "object" and "properties" in schema:
        name = body.__name__
        return {"$ref": COMPONENTS + name}, {**components, name: schema}
    return schema, components
