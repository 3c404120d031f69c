"""The settings: keywords of ``create_app``, environment variables, and options of the command."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_origin

from pydantic import Field, ValidationError, field_validator, model_validator

from sluicegate.engine.options import Count, EngineOptions, Seconds
from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

ENVIRONMENT_PREFIX: Final = "SLUICEGATE_"

_ORIGIN: Final = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")
_FIELD_NAME: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_HOST_NAME: Final = re.compile(r"\[[0-9a-f:.]+\]|[a-z0-9._-]+")
_AUTH: Final = re.compile(rf"none|bearer:.+|header:{_FIELD_NAME}")
_LINES: Final = frozenset({"suggestions"})
"""Lists whose items may contain commas; in a variable each has its own line."""

_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


class Settings(EngineOptions):
    """The settings of an application and its server; those of the engine are in `EngineOptions`.

    The environment variable of a field is ``SLUICEGATE_`` and its name in capitals; the items of
    lists are separated by commas, those of ``suggestions`` by line breaks; ``approval_ttls`` is
    ``TOOL=SECONDS,TOOL=SECONDS`` and ``live_models`` is ``AGENT=NAME,AGENT=NAME``. The docstring of
    a field is also its help on the command line.
    """

    host: str = "127.0.0.1"
    """The address to bind; also a host name that is served."""

    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """The port to bind; 0 binds a free one."""

    processes: Annotated[int, Field(ge=1, le=256)] = 1
    """Processes that serve the same port, with PostgreSQL and Valkey (command line only)."""

    auth: str = "none"
    """Authentication: ``none`` (this machine only), ``bearer:FILE`` or ``header:NAME``."""

    role_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")] | None = None
    """The header in which a trusted proxy names the roles of the user, separated by commas."""

    origins: tuple[str, ...] = ()
    """Origins of pages that may call, besides the server's own."""

    allowed_hosts: tuple[str, ...] = ()
    """Host names that are served, besides the bound address and that of ``public_url``."""

    trusted_proxies: tuple[str, ...] = ("127.0.0.0/8", "::1/128")
    """Networks whose peers are trusted when ``auth`` is ``header:NAME``."""

    credential_headers: tuple[str, ...] = ("authorization", "cookie")
    """Headers from which an authenticator of your own takes what a client could guess."""

    page: bool = True
    """Whether the chat page is served at ``/``."""

    title: Annotated[str, Field(min_length=1, max_length=60)] = "sluicegate"
    """The title of the chat page."""

    logo: str | None = None
    """A picture for the chat page, as SVG, PNG, WebP or JPEG; also its icon."""

    welcome: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The heading of a chat without messages."""

    suggestions: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=500)], ...], Field(max_length=50)
    ] = ()
    """First messages that the chat page offers."""

    page_stylesheet: str | None = None
    """A CSS file for the chat page, such as one that sets its custom properties."""

    record: str | None = None
    """A folder in which every chat is recorded, in a file of its own."""

    redact: tuple[str, ...] = ()
    """Fields whose values are removed from recordings."""

    max_head_bytes: Count = 32 * 1024
    """Bytes of the request line and the headers."""

    max_head_fields: Count = 100
    """Header fields of a request."""

    head_timeout: Seconds = 10.0
    """Seconds in which the head of a request must have arrived (command line only)."""

    max_body_bytes: Count = 32 * 1024 * 1024
    """Bytes of a body or of a message on a socket."""

    body_timeout: Seconds = 30.0
    """Seconds in which a body, or a message on a socket, must have arrived once it has begun."""

    max_json_values: Count = 250_000
    """JSON values in a body or in a message on a socket: arrays, objects and their items.

    The garbage collector visits all of them in one step, 30 ms for this many nested arrays.
    """

    max_large_requests: Count = 8
    """Bodies and messages over 64 KiB that this process reads at once; of a user it reads one."""

    max_connections: Count = 8_192
    """Connections that this process accepts (command line only)."""

    max_connections_per_peer: Count = 512
    """Connections of one address, unless it is in trusted_proxies (command line only)."""

    max_connections_per_user: Count = 256
    """Requests, streams and sockets that one user may have open; one more is answered 429."""

    max_requests_per_minute: Count = 3_000
    """Requests of any kind that one user may send in any minute; one more is answered 429."""

    max_failed_authentications: Count = 120
    """Failed authentications of one address at once; then new credentials are answered 429."""

    max_failed_authentications_per_minute: Count = 60
    """Failed authentications of one address in a minute, in the long run."""

    max_requests_per_socket: Count = 16
    """Requests that may be open on one socket."""

    max_frames_per_second: Count = 20
    """Messages a second on a socket, in the long run."""

    max_frames_burst: Count = 100
    """Messages at once on a socket."""

    max_audio_frame: Seconds = 5.0
    """Seconds of audio in one message of a live socket."""

    max_audio_ahead: Seconds = 60.0
    """Seconds by which the audio of a live socket may be ahead of real time."""

    max_audio_frames_per_second: Count = 200
    """Messages with audio a second on a live socket, in the long run."""

    first_frame_timeout: Seconds = 60.0
    """Seconds in which a socket that was opened without a user must have sent a request of one."""

    max_unauthenticated_frame_bytes: Count = 256 * 1024
    """Bytes of a message on a socket before a user is accepted."""

    unauthenticated_frame_timeout: Seconds = 5.0
    """Seconds in which such a message must have arrived once it has begun (command line only)."""

    max_unauthenticated_bytes: Count = 32 * 1024 * 1024
    """Bytes that all sockets without a user may hold together (command line only)."""

    idle_timeout: Seconds = 1800.0
    """Seconds after which a socket without an open request is closed."""

    recheck_interval: Seconds = 60.0
    """Seconds after which the user of a socket or of a stream of events is authenticated again."""

    keep_alive: Seconds = 15.0
    """Seconds of silence after which a comment or a heartbeat is sent."""

    shutdown_timeout: Annotated[int, Field(ge=1)] = 90
    """Seconds in which claimed calls may end when the server shuts down (command line only)."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is logged: debug, info, warning or error."""

    log_format: Literal["text", "json"] = "text"
    """The format of the log: text or json."""

    metrics_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """The port of its own on which metrics are served for Prometheus (command line only)."""

    metrics_host: str = "127.0.0.1"
    """The address to bind for metrics, which need no authentication (command line only)."""

    access_log: bool = False
    """Whether each response is logged, with its user, and the end of each stream."""

    @field_validator("origins")
    @classmethod
    def _are_origins(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        plain = tuple(value.lower().removesuffix("/") for value in values)
        for value in plain:
            if not _ORIGIN.fullmatch(value):
                raise ValueError("an origin is a scheme, a host and maybe a port")
        return plain

    @field_validator("allowed_hosts")
    @classmethod
    def _are_host_names(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        plain = tuple(value.lower() for value in values)
        for value in plain:
            if not _HOST_NAME.fullmatch(value):
                raise ValueError("a host name has no scheme, port or path")
        return plain

    @field_validator("credential_headers")
    @classmethod
    def _are_headers(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            if not re.fullmatch(_FIELD_NAME, value):
                raise ValueError("the name of a header has no spaces or colons")
        return values

    @field_validator("title", "welcome", "suggestions")
    @classmethod
    def _are_lines(cls, value: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        texts = value if isinstance(value, tuple) else (value or "",)
        if not all(text.isprintable() for text in texts):
            raise ValueError("it must be one line of printable characters")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            ipaddress.ip_network(value)
        return values

    @field_validator("auth")
    @classmethod
    def _is_an_authentication(cls, value: str) -> str:
        if not _AUTH.fullmatch(value):
            raise ValueError("it must be none, bearer:FILE or header:NAME")
        return value

    @model_validator(mode="after")
    def _gates_do_not_contradict(self) -> Settings:
        both = set(self.dynamic_gates) & set(self.never_gates)
        if both:
            raise ValueError(f"dynamic_gates and never_gates both name {min(both)}")
        return self

    @model_validator(mode="after")
    def _redacted_is_recorded(self) -> Settings:
        if self.redact and self.record is None:
            raise ValueError("redact takes fields out of recordings, so it needs record")
        return self

    @model_validator(mode="after")
    def _processes_share_stores(self) -> Settings:
        if self.processes > 1 and self.sessions.startswith("sqlite"):
            raise ValueError(
                "several processes need a PostgreSQL database in sessions, SQLite is for one"
            )
        if self.processes > 1 and self.streams == "memory":
            raise ValueError("several processes need a Valkey or Redis server in streams")
        if self.processes > 1 and self.metrics_port is not None:
            raise ValueError(
                "several processes have no port of metrics; leave metrics_port out, and send them "
                "to a collector, see docs/how-to/operate.md"
            )
        return self

    @property
    def engine(self) -> EngineOptions:
        """The settings of the engine."""
        return EngineOptions(**{name: getattr(self, name) for name in EngineOptions.model_fields})


def load_settings(
    environment: Mapping[str, str],
    given: Mapping[str, Any],
    options: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings: each is given, or from the environment, or the default.

    Args:
        environment: The environment variables.
        given: The settings that were given, by field.
        options: The flags by which fields were given, for error sentences.

    Raises:
        ConfigurationError: A setting is unknown or not valid; the sentence names it, but never
            its value, which may be a password.
    """
    values: dict[str, Any] = {}
    names = {field: f"The option {flag}" for field, flag in (options or {}).items()}
    for field in Settings.model_fields:
        variable = ENVIRONMENT_PREFIX + field.upper()
        if field not in given and environment.get(variable, ""):
            values[field] = _from_text(field, variable, environment[variable])
            names[field] = f"The environment variable {variable}"
    values.update(given)
    try:
        return Settings(**values)
    except ValidationError as error:
        raise ConfigurationError(_sentence(error.errors()[0], names)) from None


def _from_text(field: str, variable: str, text: str) -> Any:
    annotation = Settings.model_fields[field].annotation
    if annotation is bool:
        if text.lower() in _TRUE | _FALSE:
            return text.lower() in _TRUE
        raise ConfigurationError(f"The environment variable {variable} must be true or false.")
    items = [item.strip() for item in text.split("\n" if field in _LINES else ",")]
    if get_origin(annotation) is tuple:
        return tuple(item for item in items if item)
    if get_origin(annotation) is dict:
        pairs = [item.partition("=") for item in items if item]
        if not all(name and equals for name, equals, _ in pairs):
            raise ConfigurationError(
                f"The environment variable {variable} must be a list of NAME=VALUE."
            )
        return {name.strip(): value.strip() for name, _, value in pairs}
    return text


def _sentence(detail: ErrorDetails, names: Mapping[str, str]) -> str:
    field = str(detail["loc"][0]) if detail["loc"] else ""
    if detail["type"] == "extra_forbidden":
        return f"There is no setting {field!r}; docs/reference/settings.md lists them all."
    reason = detail["msg"].removeprefix("Value error, ")
    if not field:
        return f"These settings do not go together: {reason}."
    name = names.get(field, f"The setting {field}")
    return f"{name} cannot be used: {reason[:1].lower()}{reason[1:]}."
