"""The settings of the engine, one field each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from sluicegate.wire.limits import GRANT_TTL, RequestLimits

# The command line reads the settings; an import of ADK would delay its first output by a second.
if TYPE_CHECKING:
    from sluicegate.engine.agents.approval_requirements import ToolNames
    from sluicegate.engine.agents.text_and_live_models import ModelSettings
    from sluicegate.media.result_limits import ResultLimits

Seconds: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""A positive, finite duration."""

Count: TypeAlias = Annotated[int, Field(ge=1)]
"""A limit of at least 1."""

_LANGUAGE: Final = r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$"
_PREFIX: Final = r"^(/[A-Za-z0-9._~-]+)*$"
_FILE_TYPE: Final = r"^[a-z0-9]+/(\*|[a-z0-9][a-z0-9!#$&^_.+-]*)$"
_WORKER: Final = r"^([A-Za-z][A-Za-z0-9-]{0,31}=)?(https?://[^\s,]+|cmd:.*\S.*)$"
_WEBHOOK: Final = r"^([A-Za-z][A-Za-z0-9-]{0,31}=)?https?://[^\s,]+$"
_PUBLIC_URL: Final = r"^https?://[A-Za-z0-9.\-\[\]:]+(/[A-Za-z0-9._~-]+)*$"


@dataclass(frozen=True, slots=True)
class ApprovalLimits:
    """How many approvals may be requested (A6, S2-R43)."""

    per_turn: int
    per_exchange: int
    per_chat: int


class EngineOptions(BaseModel):
    """The settings of an engine; they do not change while it runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    release: Literal["deferred", "preview", "progressive"] = "deferred"
    """Release policy of clients that choose none with the header ``x-release``."""

    release_fixed: bool = False
    """Whether a client that requests another release policy is refused with 400."""

    approval_style: Literal["call", "confirmation"] = "call"
    """Which part carries an approval: the gated call's own, or one of ADK's confirmation call."""

    text_from_results: bool = False
    """Whether the ``message`` of a tool's result is also text of the answer (S2-R07)."""

    approval_ttl: Seconds = 86400.0
    """Seconds from the request of an approval to its expiry (A5)."""

    approval_ttls: dict[str, Seconds] = {}
    """The same by tool name, for tools with a duration of their own."""

    live_approval_ttl: Seconds = 120.0
    """The same in a live chat, where the user is present and the model waits."""

    live_announce_approvals: bool = False
    """Whether a live model says in its own words that a call waits for approval."""

    grant_ttl: Seconds = GRANT_TTL
    """Seconds for which an approval may be remembered, at most and by default (A8)."""

    rememberable_tools: tuple[str, ...] = ()
    """Tools of workers and MCP servers whose approvals may be remembered; others never may."""

    role_max_age: Seconds = 86400.0
    """Seconds for which the roles of an absent person count as they were last seen."""

    preview_timeout: Seconds = 10.0
    """Seconds within which the function of a preview must have returned."""

    max_previews_per_minute: Count = 60
    """Previews that one user may cause in any minute; of one more the card says so."""

    dynamic_gates: tuple[str, ...] = ()
    """Tools that may require approval although neither declaration nor code shows it."""

    never_gates: tuple[str, ...] = ()
    """Tools that seem to require approval and never do."""

    gate_mcp: bool = False
    """Whether tools of MCP servers require approval."""

    ungated_mcp_tools: tuple[str, ...] = ()
    """Tools of MCP servers that run without approval all the same."""

    client_tools: tuple[str, ...] = ()
    """Long-running tools whose output the page sends."""

    page_tools: tuple[str, ...] = ()
    """Tools that a page may declare in its requests; none of them is a tool of the server."""

    workers: tuple[Annotated[str, Field(pattern=_WORKER)], ...] = ()
    """Tool workers: ``NAME=URL`` or ``NAME=cmd:COMMAND`` each, or one without a name."""

    worker_tokens: str | None = None
    """A file with the credentials for these workers: a line each, ``NAME TOKEN``."""

    worker_registrations: str | None = None
    """A file with the workers that may register: a line each, ``sha256:HEX NAME``."""

    worker_hosts: tuple[str, ...] = ()
    """Hosts, addresses and networks that the URLs of workers may name besides their own peer."""

    worker_lease: Seconds = 30.0
    """Seconds after which a registration expires unless the worker registers again."""

    worker_timeout: Seconds = 30.0
    """Seconds within which a worker must have run a call."""

    worker_tools: tuple[str, ...] = ()
    """The tools of workers that may be used, ``<worker>_<tool>`` each; all of them if empty."""

    ungated_worker_tools: tuple[str, ...] = ()
    """Tools of workers that require no approval, ``<worker>_<tool>`` each."""

    idempotent_worker_tools: tuple[str, ...] = ()
    """Tools of workers that may run again with the same key, ``<worker>_<tool>`` each."""

    webhooks: tuple[Annotated[str, Field(pattern=_WEBHOOK)], ...] = ()
    """Endpoints that get events of approvals: ``NAME=URL`` each, or one without a name."""

    webhook_secrets: str | None = None
    """A file with the secrets that sign these events: a line each, ``NAME whsec_BASE64``."""

    webhook_hosts: tuple[str, ...] = ()
    """Hosts, addresses and networks of webhooks that are not public, or not encrypted."""

    webhook_details: bool = False
    """Whether events have the arguments, hint, reason and title besides who, what and when."""

    webhook_timeout: Seconds = 10.0
    """Seconds in which an endpoint must have answered."""

    webhook_ttl: Seconds = 259200.0
    """Seconds for which the delivery of an event is tried; then it is a dead letter."""

    inbox_url: Annotated[str, Field(pattern=_PUBLIC_URL)] | None = None
    """The address of the inbox that events link to; by default ``/inbox`` below ``public_url``."""

    linger: Seconds = 60.0
    """Seconds that an ungated turn continues without a reader."""

    abort_grace: Seconds = 3.0
    """The same after the last reader has aborted its response over a socket."""

    prefix: Annotated[str, Field(pattern=_PREFIX)] = "/api"
    """The path before every endpoint: empty, or a slash first and none at the end."""

    public_url: Annotated[str, Field(pattern=_PUBLIC_URL)] | None = None
    """The address of the application's root as browsers see it, without a slash at the end."""

    fast_lane: Literal["auto", "off"] = "auto"
    """Whether partial text and audio bypass ADK's Runner if no plugin or callback observes them."""

    sessions: str = "sqlite+aiosqlite:///.sluicegate/sluicegate.db"
    """SQLAlchemy URL of the database with sessions and ledger: SQLite, or PostgreSQL to share."""

    streams: str = "memory"
    """Store of the streams of running turns: ``memory``, or the URL of a Valkey or Redis server."""

    artifacts: str = "file:.sluicegate/artifacts"
    """Store of files: ``file:PATH``, or another URL of ADK's artifact services."""

    model: str | None = None
    """A model id in place of every model of the agent that runs turns, and live runs if it can."""

    live_model: str | None = None
    """A model id for live chats, in place of every model of the agent."""

    live_models: dict[str, str] = {}
    """The same by the name of the agent."""

    live_voice: Annotated[str, Field(min_length=1)] | None = None
    """The name of the voice of live models, such as ``Puck``."""

    live_language: Annotated[str, Field(pattern=_LANGUAGE)] | None = None
    """The language that live models speak, such as ``de-DE``; otherwise they choose."""

    live_transcription_languages: tuple[Annotated[str, Field(pattern=_LANGUAGE)], ...] = ()
    """The languages in which users speak, as a hint for transcripts."""

    live_sensitivity: Literal["low", "high"] | None = None
    """How readily a live model takes sounds for speech, and pauses for its end."""

    live_proactivity: bool = False
    """Whether a live model may decide not to answer."""

    live_affective_dialog: bool = False
    """Whether a live model adapts to the tone of the user's voice."""

    live_compression: bool = True
    """Whether old context is dropped, so that a live chat has no limit of time."""

    model_table: str | None = None
    """A file that extends or overrides the table of media types that models read."""

    model_script: str | None = None
    """A scenario file whose scripted model replaces every model of the agent."""

    trace_contents: bool = False
    """Whether traces contain messages, arguments and results, as people and models wrote them."""

    max_requests_per_turn: Count = 10
    """Approvals that one turn may request (A6)."""

    max_requests_per_exchange: Count = 20
    """Approvals from a user's message to its final answer (A6)."""

    max_pending_per_chat: Count = 50
    """Approvals that may be open at once in one chat (A6)."""

    max_model_calls: Count = 25
    """Model calls in one turn."""

    turn_timeout: Seconds = 600.0
    """Seconds a turn may run."""

    tool_timeout: Seconds = 60.0
    """Seconds a gated tool may run."""

    max_turn_chunks: Count = 50_000
    """Chunks in one turn, about one for each partial response of the model."""

    max_turn_bytes: Count = 8 * 1024 * 1024
    """Bytes of the chunks of one turn; in memory each takes about 200 more."""

    session_cache_bytes: Annotated[int, Field(ge=0)] = 64 * 1024 * 1024
    """Bytes of chats that are cached in memory, so that turns need not load them; 0 caches none."""

    lease_ttl: Seconds = 15.0
    """Seconds after which an unresponsive process loses the leases of its chats (A2)."""

    held_bytes: Count = 4 * 1024 * 1024
    """Bytes of text and results that may be held for one exchange (D5)."""

    max_turns: Count = 200
    """Turns that run at once in this process; one more is answered 503."""

    max_turns_per_user: Count = 5
    """Turns of one user that run at once; one more is answered 429."""

    max_turns_per_minute: Count = 60
    """Turns that one user may start in any minute; one more is answered 429."""

    max_messages_per_minute: Count = 100
    """Messages and decisions that one user may send in any minute; one more is answered 429."""

    reader_backlog: Count = 256 * 1024
    """Backlog in bytes past which a model waits for its fastest reader, or a reader is stuck."""

    reader_patience: Seconds = 5.0
    """Seconds that a stuck reader may block a write before its connection is closed."""

    max_live_chats: Count = 200
    """Chats that are open live at once in this process; one more is answered 503."""

    max_live_chats_per_user: Count = 5
    """Chats of one user that are open live at once; one more is answered 429."""

    max_text_characters: Count = 100_000
    """Characters of a user's message."""

    max_reason_characters: Count = 2_000
    """Characters of the reason beside a decision."""

    max_parts: Count = 100
    """Parts of a user's message, and decisions in one request."""

    max_files: Count = 10
    """Files in a user's message, and in a tool's result."""

    max_file_bytes: Count = 20 * 1024 * 1024
    """Decoded bytes of one file."""

    max_uploads_per_hour: Count = 500
    """Files that one user may attach in any hour; one more is answered 429."""

    max_upload_bytes_per_hour: Count = 1024 * 1024 * 1024
    """Bytes of files that one user may attach in any hour; one more is answered 429."""

    max_chat_file_bytes: Count = 1024 * 1024 * 1024
    """Bytes of the files that users attach to one chat; one more is answered 413."""

    upload_ttl: Seconds = 86400.0
    """Seconds after which an uploaded file that no message references is deleted."""

    file_types: tuple[Annotated[str, Field(pattern=_FILE_TYPE)], ...] = (
        "image/png",
        "image/jpeg",
        "image/webp",
        "image/gif",
        "image/heic",
        "image/heif",
        "application/pdf",
        "application/json",
        "text/*",
        "audio/*",
        "video/*",
    )
    """Media types that users may attach; types that run scripts in a browser never are."""

    max_output_values: Count = 10_000
    """Values in one output of a client-side tool: arrays, objects and their items."""

    max_string_characters: Count = 1024 * 1024
    """Characters of one string in such an output."""

    max_page_tool_bytes: Count = 16 * 1024
    """Bytes of the description and the JSON schema of a tool that a page declares."""

    max_result_bytes: Count = 100 * 1024
    """Bytes of JSON in a tool's result; a longer result becomes a file with a preview."""

    file_turns: Count = 10
    """User messages for which a model gets a file again; later it only gets the name."""

    file_cache_bytes: Annotated[int, Field(ge=0)] = 64 * 1024 * 1024
    """Bytes of files that are cached in memory for the next model call."""

    file_cache_ttl: Seconds = 60.0
    """Seconds after which an unused file leaves the cache."""

    file_folders: tuple[str, ...] = ()
    """Folders from which tools may return files by their path."""

    @property
    def models(self) -> ModelSettings:
        """The models in place of those that the agents have."""
        from sluicegate.engine.agents.text_and_live_models import ModelSettings  # noqa: PLC0415

        return ModelSettings(self.model, self.live_model, self.live_models)

    @property
    def tool_names(self) -> ToolNames:
        """The settings that name tools of the agent."""
        from sluicegate.engine.agents.approval_requirements import ToolNames  # noqa: PLC0415

        return ToolNames(
            dynamic_gates=frozenset(self.dynamic_gates),
            never_gates=frozenset(self.never_gates),
            client_tools=frozenset(self.client_tools),
            rememberable_tools=frozenset(self.rememberable_tools),
            gate_mcp=self.gate_mcp,
            ungated_mcp_tools=frozenset(self.ungated_mcp_tools),
        )

    @property
    def result_limits(self) -> ResultLimits:
        """The limits of a tool's result."""
        from sluicegate.media.result_limits import ResultLimits  # noqa: PLC0415

        return ResultLimits(
            files=self.max_files,
            file_bytes=self.max_file_bytes,
            text_bytes=self.max_result_bytes,
            folders=tuple(Path(folder) for folder in self.file_folders),
        )

    @property
    def approval_limits(self) -> ApprovalLimits:
        """How many approvals may be requested."""
        return ApprovalLimits(
            per_turn=self.max_requests_per_turn,
            per_exchange=self.max_requests_per_exchange,
            per_chat=self.max_pending_per_chat,
        )

    @property
    def request_limits(self) -> RequestLimits:
        """The limits of one request."""
        return RequestLimits(
            user_text=self.max_text_characters,
            reason=self.max_reason_characters,
            grant_ttl=self.grant_ttl,
            files=self.max_files,
            file_bytes=self.max_file_bytes,
            parts=self.max_parts,
            nodes=self.max_output_values,
            string=self.max_string_characters,
            page_tools=frozenset(self.page_tools),
            page_tool_bytes=self.max_page_tool_bytes,
        )

    @property
    def files_url(self) -> str:
        """The prefix of the URLs of a chat's files; ``{id}`` stands for the chat's id."""
        return f"{self.public_url or ''}{self.prefix}/chats/{{id}}/files/"

    def files_url_of(self, chat_id: str) -> str:
        """The prefix of the URLs of a chat's files; absolute when the public address is set."""
        return self.files_url.replace("{id}", chat_id)

    @property
    def longest_turn(self) -> float:
        """Seconds after which a turn has ended, in any process."""
        return self.turn_timeout + self.tool_timeout + self.lease_ttl
