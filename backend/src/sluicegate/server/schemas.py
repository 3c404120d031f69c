"""The JSON bodies of the API as types; the schemas of the OpenAPI document are made from them."""

from functools import cache
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

# typing's own cannot be inspected by pydantic before Python 3.12.
from typing_extensions import TypedDict

from sluicegate.core.approvals import ApprovalState

MAX_TITLE: Final = 200
"""Characters of a chat's title."""

ChatStatus: TypeAlias = Literal["ready", "running", "waiting"]

COMPONENTS: Final = "#/components/schemas/"

PRINTABLE: Final = r"^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$"
"""The pattern of one line of printable characters, as ``str.isprintable`` defines them."""

TITLE: Final = r"^ *[\p{L}\p{M}\p{N}\p{P}\p{S}][\p{L}\p{M}\p{N}\p{P}\p{S} ]*$"
"""The same with a character that is no space."""


def printable(max_characters: int) -> dict[str, Any]:
    """The schema of one line of printable characters."""
    return {"type": "string", "maxLength": max_characters, "pattern": PRINTABLE}


Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{1,128}$")]
"""The id of a chat or of a message."""


class Message(TypedDict):
    """A UIMessage of the AI SDK."""

    id: str
    role: Literal["system", "user", "assistant"]
    parts: list[dict[str, Any]]
    metadata: NotRequired[dict[str, Any]]


class PageTool(TypedDict):
    """A tool that the page executes."""

    description: str
    parameters: dict[str, Any]


class ChatRequest(TypedDict):
    """The body of DefaultChatTransport, or `message` with the last message only."""

    id: Id
    messages: NotRequired[list[Message]]
    message: NotRequired[Message]
    trigger: NotRequired[Literal["submit-message", "regenerate-message"]]
    messageId: NotRequired[Id | None]
    tools: NotRequired[
        Annotated[
            dict[str, PageTool],
            Field(description="Tools of the page, by names that the setting page_tools lists."),
        ]
    ]


class Session(TypedDict):
    """The user of a request."""

    user: Annotated[str | None, Field(description="Null on a server without authentication.")]
    canSignOut: Annotated[bool, Field(description="Whether the session of a cookie is used.")]


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


class GrantScope(TypedDict):
    """The later calls that a decision approves."""

    where: NotRequired[
        Annotated[list[str], Field(description="Arguments that must keep their values.")]
    ]
    ttl: NotRequired[Annotated[float, Field(ge=1, description="Seconds from the decision on.")]]


class DefinitionChange(TypedDict):
    """The old and the new value of what differs from the tool that a grant was given for."""

    description: NotRequired[list[str]]
    parameters: NotRequired[list[Any]]


class Approval(TypedDict):
    """An approval request and its decision, if there is one."""

    approvalId: str
    chatId: str
    tool: str
    agent: Annotated[str, Field(description="Names from the root agent to the caller: `a/b`.")]
    state: ApprovalState
    requestedAt: str
    expiresAt: str
    arguments: NotRequired[dict[str, Any]]
    editable: NotRequired[bool]
    rememberable: NotRequired[bool]
    grantTtl: NotRequired[Annotated[float, Field(description="Seconds for `remember`, at most.")]]
    changed: NotRequired[DefinitionChange]
    hint: NotRequired[str]
    schema: NotRequired[dict[str, Any]]
    approved: NotRequired[bool]
    reason: NotRequired[str]
    edits: NotRequired[dict[str, Any]]
    payload: NotRequired[
        Annotated[Any, Field(description="What the tool asks the approver to check or to fill in.")]
    ]
    editedPayload: NotRequired[
        Annotated[Any, Field(description="What was approved in place of the payload.")]
    ]
    remember: NotRequired[GrantScope]
    decidedBy: NotRequired[str]
    decidedAt: NotRequired[str]


class ApprovalPage(TypedDict):
    """One page of the list of approvals that wait."""

    approvals: list[Approval]
    next: str | None


class Decision(TypedDict):
    """A decision on an approval request."""

    approved: bool
    reason: NotRequired[str]
    edits: NotRequired[
        Annotated[dict[str, Any], Field(description="Arguments to run with in place of the first.")]
    ]
    payload: NotRequired[
        Annotated[
            Any, Field(description="The payload for the tool, in the shape of the requested one.")
        ]
    ]
    remember: NotRequired[
        Annotated[
            Literal["chat"] | GrantScope,
            Field(description="Approve later calls too; `chat` is any arguments."),
        ]
    ]


class Grant(TypedDict):
    """Calls of a tool that an earlier decision in the chat approves."""

    id: str
    tool: str
    agent: str
    where: Annotated[dict[str, Any], Field(description="Arguments that must have these values.")]
    approvalId: str
    grantedAt: str
    expiresAt: str


class Grants(TypedDict):
    """The grants of a chat."""

    grants: list[Grant]


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
"""The data of an event of ``GET /events``."""


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
