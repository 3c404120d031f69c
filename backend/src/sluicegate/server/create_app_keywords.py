"""The settings among the keywords of ``create_app``, for type checkers.

Written from `Settings` by ``scripts/create_app_keywords.py``.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - `get_type_hints` reads it
from typing import Literal, TypedDict


class SettingsKeywords(TypedDict, total=False):
    """The settings; those that are left out are read from the environment."""

    release: Literal["deferred", "preview", "progressive"]
    """Release policy of clients that choose none with the header ``x-release``."""

    release_fixed: bool
    """Whether a client that requests another release policy is refused with 400."""

    approval_style: Literal["call", "confirmation"]
    """Which part carries an approval: the gated call's own, or one of ADK's confirmation call."""

    text_from_results: bool
    """Whether the ``message`` of a tool's result is also text of the answer (S2-R07)."""

    approval_ttl: float
    """Seconds from the request of an approval to its expiry (A5)."""

    approval_ttls: Mapping[str, float]
    """The same by tool name, for tools with a duration of their own."""

    live_approval_ttl: float
    """The same in a live chat, where the user is present and the model waits."""

    live_announce_approvals: bool
    """Whether a live model says in its own words that a call waits for approval."""

    grant_ttl: float
    """Seconds for which an approval may be remembered, at most and by default (A8)."""

    rememberable_tools: tuple[str, ...] | list[str]
    """Tools of workers and MCP servers whose approvals may be remembered; others never may."""

    role_max_age: float
    """Seconds for which the roles of an absent person count as they were last seen."""

    preview_timeout: float
    """Seconds within which the function of a preview must have returned."""

    max_previews_per_minute: int
    """Previews that one user may cause in any minute; of one more the card says so."""

    dynamic_gates: tuple[str, ...] | list[str]
    """Tools that may require approval although neither declaration nor code shows it."""

    never_gates: tuple[str, ...] | list[str]
    """Tools that seem to require approval and never do."""

    gate_mcp: bool
    """Whether tools of MCP servers require approval."""

    ungated_mcp_tools: tuple[str, ...] | list[str]
    """Tools of MCP servers that run without approval all the same."""

    client_tools: tuple[str, ...] | list[str]
    """Long-running tools whose output the page sends."""

    page_tools: tuple[str, ...] | list[str]
    """Tools that a page may declare in its requests; none of them is a tool of the server."""

    workers: tuple[str, ...] | list[str]
    """Tool workers: ``NAME=URL`` or ``NAME=cmd:COMMAND`` each, or one without a name."""

    worker_tokens: str | None
    """A file with the credentials for these workers: a line each, ``NAME TOKEN``."""

    worker_registrations: str | None
    """A file with the workers that may register: a line each, ``sha256:HEX NAME``."""

    worker_hosts: tuple[str, ...] | list[str]
    """Hosts, addresses and networks that the URLs of workers may name besides their own peer."""

    worker_lease: float
    """Seconds after which a registration expires unless the worker registers again."""

    worker_timeout: float
    """Seconds within which a worker must have run a call."""

    worker_tools: tuple[str, ...] | list[str]
    """The tools of workers that may be used, ``<worker>_<tool>`` each; all of them if empty."""

    ungated_worker_tools: tuple[str, ...] | list[str]
    """Tools of workers that require no approval, ``<worker>_<tool>`` each."""

    idempotent_worker_tools: tuple[str, ...] | list[str]
    """Tools of workers that may run again with the same key, ``<worker>_<tool>`` each."""

    webhooks: tuple[str, ...] | list[str]
    """Endpoints that get events of approvals: ``NAME=URL`` each, or one without a name."""

    webhook_secrets: str | None
    """A file with the secrets that sign these events: a line each, ``NAME whsec_BASE64``."""

    webhook_hosts: tuple[str, ...] | list[str]
    """Hosts, addresses and networks of webhooks that are not public, or not encrypted."""

    webhook_details: bool
    """Whether events have the arguments, hint, reason and title besides who, what and when."""

    webhook_timeout: float
    """Seconds in which an endpoint must have answered."""

    webhook_ttl: float
    """Seconds for which the delivery of an event is tried; then it is a dead letter."""

    inbox_url: str | None
    """The address of the inbox that events link to; by default ``/inbox`` below ``public_url``."""

    linger: float
    """Seconds that an ungated turn continues without a reader."""

    abort_grace: float
    """The same after the last reader has aborted its response over a socket."""

    prefix: str
    """The path before every endpoint: empty, or a slash first and none at the end."""

    public_url: str | None
    """The address of the application's root as browsers see it, without a slash at the end."""

    fast_lane: Literal["auto", "off"]
    """Whether partial text and audio bypass ADK's Runner if no plugin or callback observes them."""

    sessions: str
    """SQLAlchemy URL of the database with sessions and ledger: SQLite, or PostgreSQL to share."""

    streams: str
    """Store of the streams of running turns: ``memory``, or the URL of a Valkey or Redis server."""

    artifacts: str
    """Store of files: ``file:PATH``, or another URL of ADK's artifact services."""

    model: str | None
    """A model id in place of every model of the agent that runs turns, and live runs if it can."""

    live_model: str | None
    """A model id for live chats, in place of every model of the agent."""

    live_models: Mapping[str, str]
    """The same by the name of the agent."""

    live_voice: str | None
    """The name of the voice of live models, such as ``Puck``."""

    live_language: str | None
    """The language that live models speak, such as ``de-DE``; otherwise they choose."""

    live_transcription_languages: tuple[str, ...] | list[str]
    """The languages in which users speak, as a hint for transcripts."""

    live_sensitivity: Literal["low", "high"] | None
    """How readily a live model takes sounds for speech, and pauses for its end."""

    live_proactivity: bool
    """Whether a live model may decide not to answer."""

    live_affective_dialog: bool
    """Whether a live model adapts to the tone of the user's voice."""

    live_compression: bool
    """Whether old context is dropped, so that a live chat has no limit of time."""

    model_table: str | None
    """A file that extends or overrides the table of media types that models read."""

    model_script: str | None
    """A scenario file whose scripted model replaces every model of the agent."""

    trace_contents: bool
    """Whether traces contain messages, arguments and results, as people and models wrote them."""

    max_requests_per_turn: int
    """Approvals that one turn may request (A6)."""

    max_requests_per_exchange: int
    """Approvals from a user's message to its final answer (A6)."""

    max_pending_per_chat: int
    """Approvals that may be open at once in one chat (A6)."""

    max_model_calls: int
    """Model calls in one turn."""

    turn_timeout: float
    """Seconds a turn may run."""

    tool_timeout: float
    """Seconds a gated tool may run."""

    max_turn_chunks: int
    """Chunks in one turn, about one for each partial response of the model."""

    max_turn_bytes: int
    """Bytes of the chunks of one turn; in memory each takes about 200 more."""

    session_cache_bytes: int
    """Bytes of chats that are cached in memory, so that turns need not load them; 0 caches none."""

    lease_ttl: float
    """Seconds after which an unresponsive process loses the leases of its chats (A2)."""

    held_bytes: int
    """Bytes of text and results that may be held for one exchange (D5)."""

    max_turns: int
    """Turns that run at once in this process; one more is answered 503."""

    max_turns_per_user: int
    """Turns of one user that run at once; one more is answered 429."""

    max_turns_per_minute: int
    """Turns that one user may start in any minute; one more is answered 429."""

    max_messages_per_minute: int
    """Messages and decisions that one user may send in any minute; one more is answered 429."""

    reader_backlog: int
    """Backlog in bytes past which a model waits for its fastest reader, or a reader is stuck."""

    reader_patience: float
    """Seconds that a stuck reader may block a write before its connection is closed."""

    max_live_chats: int
    """Chats that are open live at once in this process; one more is answered 503."""

    max_live_chats_per_user: int
    """Chats of one user that are open live at once; one more is answered 429."""

    max_text_characters: int
    """Characters of a user's message."""

    max_reason_characters: int
    """Characters of the reason beside a decision."""

    max_parts: int
    """Parts of a user's message, and decisions in one request."""

    max_files: int
    """Files in a user's message, and in a tool's result."""

    max_file_bytes: int
    """Decoded bytes of one file."""

    max_uploads_per_hour: int
    """Files that one user may attach in any hour; one more is answered 429."""

    max_upload_bytes_per_hour: int
    """Bytes of files that one user may attach in any hour; one more is answered 429."""

    max_chat_file_bytes: int
    """Bytes of the files that users attach to one chat; one more is answered 413."""

    upload_ttl: float
    """Seconds after which an uploaded file that no message references is deleted."""

    file_types: tuple[str, ...] | list[str]
    """Media types that users may attach; types that run scripts in a browser never are."""

    max_output_values: int
    """Values in one output of a client-side tool: arrays, objects and their items."""

    max_string_characters: int
    """Characters of one string in such an output."""

    max_page_tool_bytes: int
    """Bytes of the description and the JSON schema of a tool that a page declares."""

    max_result_bytes: int
    """Bytes of JSON in a tool's result; a longer result becomes a file with a preview."""

    file_turns: int
    """User messages for which a model gets a file again; later it only gets the name."""

    file_cache_bytes: int
    """Bytes of files that are cached in memory for the next model call."""

    file_cache_ttl: float
    """Seconds after which an unused file leaves the cache."""

    file_folders: tuple[str, ...] | list[str]
    """Folders from which tools may return files by their path."""

    host: str
    """The address to bind; also a host name that is served."""

    port: int
    """The port to bind; 0 binds a free one."""

    processes: int
    """Processes that serve the same port, with PostgreSQL and Valkey (command line only)."""

    auth: str
    """Authentication: ``none`` (this machine only), ``bearer:FILE`` or ``header:NAME``."""

    role_header: str | None
    """The header in which a trusted proxy names the roles of the user, separated by commas."""

    origins: tuple[str, ...] | list[str]
    """Origins of pages that may call, besides the server's own."""

    allowed_hosts: tuple[str, ...] | list[str]
    """Host names that are served, besides the bound address and that of ``public_url``."""

    trusted_proxies: tuple[str, ...] | list[str]
    """Networks whose peers are trusted when ``auth`` is ``header:NAME``."""

    credential_headers: tuple[str, ...] | list[str]
    """Headers from which an authenticator of your own takes what a client could guess."""

    page: bool
    """Whether the chat page is served at ``/``."""

    title: str
    """The title of the chat page."""

    logo: str | None
    """A picture for the chat page, as SVG, PNG, WebP or JPEG; also its icon."""

    welcome: str | None
    """The heading of a chat without messages."""

    suggestions: tuple[str, ...] | list[str]
    """First messages that the chat page offers."""

    page_stylesheet: str | None
    """A CSS file for the chat page, such as one that sets its custom properties."""

    record: str | None
    """A folder in which every chat is recorded, in a file of its own."""

    redact: tuple[str, ...] | list[str]
    """Fields whose values are removed from recordings."""

    max_head_bytes: int
    """Bytes of the request line and the headers."""

    max_head_fields: int
    """Header fields of a request."""

    head_timeout: float
    """Seconds in which the head of a request must have arrived (command line only)."""

    max_body_bytes: int
    """Bytes of a body or of a message on a socket."""

    body_timeout: float
    """Seconds in which a body, or a message on a socket, must have arrived once it has begun."""

    max_json_values: int
    """JSON values in a body or in a message on a socket: arrays, objects and their items."""

    max_large_requests: int
    """Bodies and messages over 64 KiB that this process reads at once; of a user it reads one."""

    max_connections: int
    """Connections that this process accepts (command line only)."""

    max_connections_per_peer: int
    """Connections of one address, unless it is in trusted_proxies (command line only)."""

    max_connections_per_user: int
    """Requests, streams and sockets that one user may have open; one more is answered 429."""

    max_requests_per_minute: int
    """Requests of any kind that one user may send in any minute; one more is answered 429."""

    max_failed_authentications: int
    """Failed authentications of one address at once; then new credentials are answered 429."""

    max_failed_authentications_per_minute: int
    """Failed authentications of one address in a minute, in the long run."""

    max_requests_per_socket: int
    """Requests that may be open on one socket."""

    max_frames_per_second: int
    """Messages a second on a socket, in the long run."""

    max_frames_burst: int
    """Messages at once on a socket."""

    max_audio_frame: float
    """Seconds of audio in one message of a live socket."""

    max_audio_ahead: float
    """Seconds by which the audio of a live socket may be ahead of real time."""

    max_audio_frames_per_second: int
    """Messages with audio a second on a live socket, in the long run."""

    first_frame_timeout: float
    """Seconds in which a socket that was opened without a user must have sent a request of one."""

    max_unauthenticated_frame_bytes: int
    """Bytes of a message on a socket before a user is accepted."""

    unauthenticated_frame_timeout: float
    """Seconds in which such a message must have arrived once it has begun (command line only)."""

    max_unauthenticated_bytes: int
    """Bytes that all sockets without a user may hold together (command line only)."""

    idle_timeout: float
    """Seconds after which a socket without an open request is closed."""

    recheck_interval: float
    """Seconds after which the user of a socket or of a stream of events is authenticated again."""

    keep_alive: float
    """Seconds of silence after which a comment or a heartbeat is sent."""

    shutdown_timeout: int
    """Seconds in which claimed calls may end when the server shuts down (command line only)."""

    log_level: Literal["debug", "info", "warning", "error"]
    """The lowest level that is logged: debug, info, warning or error."""

    log_format: Literal["text", "json"]
    """The format of the log: text or json."""

    metrics_port: int | None
    """The port of its own on which metrics are served for Prometheus (command line only)."""

    metrics_host: str
    """The address to bind for metrics, which need no authentication (command line only)."""

    access_log: bool
    """Whether each response is logged, with its user, and the end of each stream."""
