"""The SDK of OpenTelemetry, set up for a served process: OTLP, and Prometheus on its own port.

It is imported only when the environment or the settings ask for one of them. What is measured is
defined in `sluicegate.engine.telemetry`.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sluicegate._version import __version__
from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    from sluicegate.server.settings import Settings

_EXPORTERS: Final = ("otlp", "console", "none")
_PROTOCOL: Final = "http/protobuf"
_MISSING: Final = (
    "Telemetry was asked for, but the packages of OpenTelemetry are not installed; "
    "install sluicegate with the extra otel."
)


class Exports(NamedTuple):
    """Where traces and metrics go; each is ``otlp``, ``console`` or empty."""

    traces: str = ""
    metrics: str = ""
    port: int | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str], port: int | None) -> Exports:
        """Read the variables that OpenTelemetry defines.

        Raises:
            ConfigurationError: One of them has a value that is not supported.
        """
        if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
            return cls()
        return cls(_exporter(environment, "TRACES"), _exporter(environment, "METRICS"), port)


def _exporter(environment: Mapping[str, str], signal: str) -> str:
    """Return the exporter of a signal; an endpoint alone asks for OTLP."""
    variable = f"OTEL_{signal}_EXPORTER"
    endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    default = "otlp" if any(environment.get(name) for name in endpoints) else "none"
    chosen = environment.get(variable) or default
    if chosen not in _EXPORTERS:
        hint = " (--metrics-port serves Prometheus)" if chosen == "prometheus" else ""
        raise ConfigurationError(
            f"The environment variable {variable} must be otlp, console or none{hint}."
        )
    if chosen == "otlp":
        _require_http(environment, signal)
    return "" if chosen == "none" else chosen


def _require_http(environment: Mapping[str, str], signal: str) -> None:
    for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = environment.get(name)
        if protocol:
            if protocol != _PROTOCOL:
                raise ConfigurationError(
                    f"The environment variable {name} must be {_PROTOCOL}, which every collector "
                    "accepts on port 4318."
                )
            return


@contextlib.contextmanager
def exporting(settings: Settings, environment: Mapping[str, str]) -> Iterator[None]:
    """Export traces and metrics until the block ends, if something asks for it.

    Raises:
        ConfigurationError: A variable or the port cannot be used, or the packages are missing.
    """
    exports = Exports.of(environment, settings.metrics_port)
    if exports == Exports():
        yield
        return
    with contextlib.ExitStack() as stack:
        try:
            resource = _module("opentelemetry.sdk.resources").Resource.create(_service(environment))
            if exports.traces:
                stack.callback(_trace(exports.traces, resource))
            if exports.metrics or exports.port is not None:
                readers = _readers(exports, settings.metrics_host, stack)
                stack.callback(_measure(readers, resource))
        except ImportError:
            raise ConfigurationError(_MISSING) from None
        yield


def _service(environment: Mapping[str, str]) -> dict[str, str]:
    """The name of the service, unless a variable names it."""
    named = "OTEL_SERVICE_NAME" in environment or "service.name=" in environment.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    return {"service.version": __version__, **({} if named else {"service.name": "sluicegate"})}


def _module(name: str) -> ModuleType:
    return importlib.import_module(name)


def _trace(exporter: str, resource: Any) -> Callable[[], None]:
    """Trace by an exporter; returns what ends that."""
    from opentelemetry import trace  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    ids = _module("sluicegate.server.approval_span_id_generator").ApprovalIds()
    provider = TracerProvider(resource=resource, id_generator=ids)
    if exporter == "otlp":
        module = _module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        made = module.OTLPSpanExporter()
    else:
        made = _module("opentelemetry.sdk.trace.export").ConsoleSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(made))
    trace.set_tracer_provider(provider)
    return provider.shutdown


def _measure(readers: list[Any], resource: Any) -> Callable[[], None]:
    """Measure for readers; returns what ends that."""
    from opentelemetry import metrics  # noqa: PLC0415
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415

    provider = MeterProvider(readers, resource=resource)
    metrics.set_meter_provider(provider)
    return provider.shutdown


def _readers(exports: Exports, host: str, stack: contextlib.ExitStack) -> list[Any]:
    readers: list[Any] = []
    if exports.metrics:
        export = _module("opentelemetry.sdk.metrics.export")
        if exports.metrics == "otlp":
            module = _module("opentelemetry.exporter.otlp.proto.http.metric_exporter")
            made = module.OTLPMetricExporter()
        else:
            made = export.ConsoleMetricExporter()
        readers.append(export.PeriodicExportingMetricReader(made))
    if exports.port is not None:
        prometheus = _module("opentelemetry.exporter.prometheus")
        client = _module("prometheus_client")
        # A registry of its own: that of the process may have metrics of the agent's packages.
        registry = client.CollectorRegistry()
        client.ProcessCollector(registry=registry)
        readers.append(
            prometheus.PrometheusMetricReader(scope_info_enabled=False, registry=registry)
        )
        _serve_metrics(client, exports.port, host, registry, stack)
    return readers


def _serve_metrics(
    client: Any, port: int, host: str, registry: Any, stack: contextlib.ExitStack
) -> None:
    try:
        server, thread = client.start_http_server(port, host.strip("[]"), registry)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ConfigurationError(
            f"Port {port} of {host} cannot be used for metrics: {reason}; choose another with "
            "--metrics-port or --metrics-host."
        ) from None

    def close() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    stack.callback(close)
