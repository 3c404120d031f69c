"""A served process exports traces and metrics, and what is in ``deploy/`` reads these metrics."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import promql_parser
import pytest
import yaml
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from sluicegate.errors import ConfigurationError
from sluicegate.server.settings import Settings
from sluicegate.server.telemetry import Exports, exporting
from tests.real_stores.ports import free_port
from tests.server.exchange import chat_body, chunks

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
ALERTS = DEPLOY / "prometheus-alerts.yaml"
DASHBOARD = DEPLOY / "grafana-dashboard.json"
TEXT = "Pay 4711 euros to ACME"
IBAN = "DE89370400440532013000"
AGENT = """
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool


def pay(iban: str) -> dict[str, str]:
    '''Pay.'''
    return {"paid": iban}


root_agent = LlmAgent(
    name="payer", model="scripted", tools=[FunctionTool(pay, require_confirmation=True)]
)
"""
SCRIPT = f"""
scenarios:
  - match: "Pay"
    responses:
      - parts: [{{call: {{name: pay, args: {{iban: {IBAN}}}}}}}]
      - parts: [{{text: "Paid to "}}, {{text: "{IBAN} "}}, {{text: "now."}}]
  - match: "fail"
    responses: [{{error: {{code: 503, message: "no"}}}}]
"""


@dataclass
class Collector:
    """What an OTLP collector has received."""

    spans: list[Any] = field(default_factory=list)
    metrics: set[str] = field(default_factory=set)
    bodies: list[bytes] = field(default_factory=list)
    url: str = ""


class _Receiver(BaseHTTPRequestHandler):
    collector: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.collector.bodies.append(body)
        if self.path == "/v1/traces":
            request = ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    self.collector.spans += scope.spans
        else:
            for found in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for measured in found.scope_metrics:
                    self.collector.metrics |= {metric.name for metric in measured.metrics}
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Be quiet."""


@dataclass
class Served:
    """A server that has answered, its metrics, and what it sent to the collector."""

    metrics: str
    collector: Collector
    status_of_metrics: int


def approve(http: httpx.Client) -> None:
    asked = chunks(http.post("/api/chat", json=chat_body(TEXT)).text)
    request = next(each for each in asked if each["type"] == "tool-approval-request")
    answer = {"approved": True}
    path = f"/api/approvals/{request['approvalId']}"
    assert http.post(path, json=answer).status_code == 202
    deadline = time.monotonic() + 30
    while http.get(path).json()["state"] != "executed":
        assert time.monotonic() < deadline
    # The turn runs detached; a resume reads it to its end.
    http.get(f"/api/chat/{chat_body(TEXT)['id']}/stream")


def use(process: subprocess.Popen[str]) -> int:
    """Approve a call and make a model fail; returns the status of ``/metrics`` beside the API."""
    assert process.stdout is not None
    url = process.stdout.readline().partition(" at ")[2].partition(" ")[0]
    with httpx.Client(base_url=url, timeout=30) as http:
        approve(http)
        http.post("/api/chat", json=chat_body("fail", chat="c2"))
        return http.get("/metrics").status_code


def scraped(url: str) -> str:
    """The metrics once no reader is open: a client has its last byte before the server closes it.

    After 30 seconds they are returned as they are.
    """
    deadline = time.monotonic() + 30
    with httpx.Client(timeout=30) as http:
        while True:
            text = http.get(url).text
            samples = [each for one in text_string_to_metric_families(text) for each in one.samples]
            readers = sum(each.value for each in samples if each.name == "sluicegate_readers")
            if readers == 0 or time.monotonic() > deadline:
                return text


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    """One run of ``sluicegate serve`` with a collector and Prometheus."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "agent.py").write_text(AGENT)
    (folder / "script.yaml").write_text(SCRIPT)
    collector = Collector()
    receiver = type("Receiver", (_Receiver,), {"collector": collector})
    with ThreadingHTTPServer(("127.0.0.1", 0), receiver) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        port = free_port()
        command = [str(Path(sys.executable).with_name("sluicegate")), "serve", "agent.py"]
        command += ["--port", "0", "--no-page", "--metrics-port", str(port)]
        command += ["--model-script", "script.yaml", "--release", "progressive"]
        collector.url = f"http://127.0.0.1:{server.server_port}"
        environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder
        ) as process:
            try:
                status = use(process)
                metrics = scraped(f"http://127.0.0.1:{port}/metrics")
            finally:
                process.terminate()
            assert process.wait(timeout=30) == 0
        server.shutdown()
        thread.join()
    return Served(metrics, collector, status)


def families(served: Served) -> dict[str, Any]:
    return {each.name: each for each in text_string_to_metric_families(served.metrics)}


def sample_names(served: Served) -> set[str]:
    return {sample.name for each in families(served).values() for sample in each.samples}


def value(served: Served, name: str, **labels: str) -> float:
    samples = [sample for each in families(served).values() for sample in each.samples]
    return sum(
        float(each.value)
        for each in samples
        if each.name == name and labels.items() <= each.labels.items()
    )


def test_a_collector_gets_the_turns_and_the_approval_over_otlp(served: Served) -> None:
    names = [span.name for span in served.collector.spans]
    assert names.count("turn") == 3
    assert names.count("approval") == 1
    assert "execute_tool pay" in names
    assert "sluicegate.turn.duration" in served.collector.metrics


def test_prometheus_reads_the_metrics_on_a_port_of_their_own(served: Served) -> None:
    assert served.status_of_metrics == 404
    count = "sluicegate_turn_duration_seconds_count"
    assert value(served, count, end="waiting") == 1
    assert value(served, count, end="finished") == 1
    assert value(served, count, end="failed") == 1
    outcome = "sluicegate_approval_outcomes_total"
    assert value(served, outcome, outcome="executed", tool="pay") == 1
    assert value(served, "sluicegate_approval_decision_time_seconds_count", via="http") == 1
    assert value(served, "sluicegate_turn_first_delta_seconds_count") >= 1
    assert value(served, "sluicegate_turn_longest_gap_seconds_count") == 1
    assert value(served, "sluicegate_model_errors_total", error_type="model_unavailable") == 1
    assert value(served, "sluicegate_lease_lost_total") == 0
    assert value(served, "sluicegate_readers") == 0
    assert "sluicegate_approvals_waiting" in families(served)


def test_nothing_that_is_exported_has_contents(served: Served) -> None:
    exported = served.metrics.encode() + b"".join(served.collector.bodies)
    assert b"payer" in exported
    # Fewer digits could be those of a time or of an id.
    assert IBAN.encode() not in exported
    assert b"euros" not in exported
    assert b"ACME" not in exported


@pytest.mark.parametrize(
    ("environment", "port", "expected"),
    [
        ({}, None, Exports()),
        ({}, 9464, Exports(port=9464)),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, None, Exports("otlp", "otlp")),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, None, Exports("otlp")),
        ({"OTEL_TRACES_EXPORTER": "console"}, None, Exports("console")),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_METRICS_EXPORTER": "none"},
            None,
            Exports("otlp"),
        ),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, 9464, Exports()),
    ],
)
def test_the_variables_of_opentelemetry_decide_what_is_exported(
    environment: dict[str, str], port: int | None, expected: Exports
) -> None:
    assert Exports.of(environment, port) == expected


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"OTEL_METRICS_EXPORTER": "prometheus"}, "--metrics-port serves Prometheus"),
        ({"OTEL_TRACES_EXPORTER": "jaeger"}, "must be otlp, console or none"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "must be http/protobuf",
        ),
    ],
)
def test_a_variable_that_is_not_supported_is_refused_in_one_sentence(
    environment: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(sentence)):
        Exports.of(environment, None)


def test_a_port_that_is_in_use_is_refused_in_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = Settings(metrics_port=taken.getsockname()[1])
        refused = pytest.raises(ConfigurationError, match="cannot be used for metrics: address")
        with refused, exporting(settings, {}):
            pass


def test_without_the_extra_an_export_is_refused_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.prometheus", None)
    refused = pytest.raises(ConfigurationError, match="with the extra otel")
    with refused, exporting(Settings(metrics_port=free_port()), {}):
        pass


def alerts() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def panel_queries() -> list[str]:
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    found = [each["expr"] for panel in dashboard["panels"] for each in panel["targets"]]
    # Grafana replaces its variables before Prometheus reads the query.
    return [each.replace("$__rate_interval", "5m").replace("$job", ".+") for each in found]


QUERIES = [*(rule["expr"] for rule in alerts()), *panel_queries()]
OF_PROMETHEUS = {"job", "instance", "le"}


def selectors(query: str) -> list[tuple[str, set[str]]]:
    """The metrics of a query with the labels that it matches; raises ValueError for bad syntax."""
    promql_parser.parse(query)
    found = re.findall(r"([a-z_]+)\{([^}]*)\}|\b(sluicegate_[a-z_]+)\b", query)
    return [
        (name or bare, set(re.findall(r"(\w+)\s*(?:=~|=|!=)", matchers)))
        for name, matchers, bare in found
    ]


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_of_an_alert_or_a_panel_reads_what_is_served(served: Served, query: str) -> None:
    names = sample_names(served)
    labels: dict[str, set[str]] = {}
    for each in families(served).values():
        for sample in each.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    read = [(name, matched) for name, matched in selectors(query) if name != "up"]
    # The gap is recorded once in sixteen deltas; its longest has the same form.
    rare = {
        "sluicegate_turn_delta_gap_seconds_bucket": "sluicegate_turn_longest_gap_seconds_bucket"
    }
    for name, matched in read:
        served_as = rare.get(name, name)
        assert served_as in names
        assert matched <= labels[served_as] | OF_PROMETHEUS
    for grouped in re.findall(r"by \(([^)]*)\)", query):
        known = set.union(*(labels[rare.get(name, name)] for name, _ in read))
        assert set(grouped.split(", ")) <= known | OF_PROMETHEUS
    assert read or query.startswith("up{")


def test_each_alert_has_a_section_that_says_what_to_do() -> None:
    page = (DEPLOY.parent / "docs/how-to/operate.md").read_text("utf-8")
    assert len(alerts()) == 9
    for rule in alerts():
        assert f"### {rule['alert']}\n" in page
        assert rule["annotations"]["runbook"].endswith(f"#{rule['alert'].lower()}")
        assert rule["annotations"]["summary"]


def test_every_metric_of_the_documentation_is_served_and_every_served_one_documented(
    served: Served,
) -> None:
    page = (DEPLOY.parent / "docs/how-to/operate.md").read_text("utf-8")
    documented = set(re.findall(r"^\| `(sluicegate_\w+)`", page, re.MULTILINE))
    own = {
        each.name + ("_total" if each.type == "counter" else "")
        for each in families(served).values()
        if each.name.startswith("sluicegate_")
    }
    assert documented == own | {"sluicegate_turn_delta_gap_seconds"}
