"""The manifest of ``deploy/`` is valid for Kubernetes, and matches the server and the image."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from sluicegate import __version__
from sluicegate.errors import Unavailable
from sluicegate.server.app import build
from sluicegate.server.command_parser import command_parser
from sluicegate.server.settings import Settings, load_settings
from sluicegate.server.uvicorn_server import CLOSING_SECONDS
from tests.docs.markdown import ROOT
from tests.server.exchange import client
from tests.server.fake_engine import FakeEngine

MANIFEST: list[dict[str, Any]] = list(
    yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text("utf-8"))
)
SCHEMAS: dict[str, Any] = json.loads(
    Path(__file__).with_name("kubernetes_schemas.json").read_text("utf-8")
)
STORES = {
    "SLUICEGATE_SESSIONS": "postgresql+asyncpg://sluicegate:secret@postgres/sluicegate",
    "SLUICEGATE_STREAMS": "valkey://:secret@valkey:6379/0",
}


def one(kind: str) -> dict[str, Any]:
    [found] = [each for each in MANIFEST if each["kind"] == kind]
    return found


POD: dict[str, Any] = one("Deployment")["spec"]["template"]["spec"]
[CONTAINER] = POD["containers"]


def validator(resource: dict[str, Any]) -> jsonschema_rs.Validator:
    """The strict schema of a kind: unknown fields are errors."""
    schema = SCHEMAS["kinds"][f"{resource['apiVersion']} {resource['kind']}"]
    return jsonschema_rs.validator_for({**schema, "$defs": SCHEMAS["$defs"]})


@pytest.mark.parametrize("resource", MANIFEST, ids=lambda each: each["kind"])
def test_each_object_is_valid_for_kubernetes(resource: dict[str, Any]) -> None:
    validator(resource).validate(resource)


@pytest.mark.parametrize(
    ("name", "value"),
    [("livenesProbe", {}), ("image", 1), ("resources", {"limit": {}}), ("ports", [{"port": 1}])],
)
def test_a_wrong_field_is_an_error(name: str, value: object) -> None:
    wrong = copy.deepcopy(one("Deployment"))
    wrong["spec"]["template"]["spec"]["containers"][0][name] = value
    assert not validator(wrong).is_valid(wrong)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of a replica, with the tokens in a local file."""
    variables: dict[str, str] = one("ConfigMap")["data"] | STORES
    [mount] = [each for each in CONTAINER["volumeMounts"] if each["name"] == "tokens"]
    assert variables["SLUICEGATE_AUTH"] == f"bearer:{mount['mountPath']}/tokens"
    tokens = tmp_path / "tokens"
    tokens.write_text("")
    return load_settings(variables, {"auth": f"bearer:{tokens}", "page": False})


def test_every_variable_is_a_setting_and_the_command_exists(settings: Settings) -> None:
    names = {name.removeprefix("SLUICEGATE_").lower() for name in one("ConfigMap")["data"]}
    assert names <= set(Settings.model_fields)
    assert settings.access_log
    program, *arguments = CONTAINER["args"]
    assert program == "sluicegate"
    command_parser().parse_args(arguments)
    assert CONTAINER["image"].endswith(f"/sluicegate:{__version__}")


async def test_the_probes_are_answered_as_they_should(settings: Settings) -> None:
    engine = FakeEngine()
    app = build(engine.open, settings).app
    [port] = CONTAINER["ports"]
    assert port["containerPort"] == settings.port
    # The kubelet asks the address of the pod, to which it connects.
    async with client(app, base_url=f"http://127.0.0.1:{settings.port}") as http:
        for ready in (True, False):
            engine.not_ready = None if ready else Unavailable()
            for probe, alive in {"startup": 200, "liveness": 200, "readiness": 503}.items():
                asked = CONTAINER[f"{probe}Probe"]["httpGet"]
                assert asked["port"] == port["name"]
                response = await http.get(asked["path"])
                assert response.status_code == (200 if ready else alive), probe


def test_a_replica_drains_before_it_is_killed(settings: Settings) -> None:
    pause = int(CONTAINER["lifecycle"]["preStop"]["exec"]["command"][-1])
    drained = pause + settings.shutdown_timeout + CLOSING_SECONDS
    assert POD["terminationGracePeriodSeconds"] > drained
    assert settings.shutdown_timeout >= settings.tool_timeout
    # A replica that is not ready any more leaves the service before it refuses requests.
    readiness = CONTAINER["readinessProbe"]
    assert readiness["periodSeconds"] * readiness["failureThreshold"] <= pause


def test_one_of_two_replicas_always_serves() -> None:
    deployment = one("Deployment")["spec"]
    assert deployment["replicas"] == 2
    assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert one("PodDisruptionBudget")["spec"]["minAvailable"] == 1
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == labels
    assert one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    assert one("Service")["spec"]["selector"] == labels
    assert one("PersistentVolumeClaim")["spec"]["accessModes"] == ["ReadWriteMany"]


def test_the_container_can_write_nothing_but_its_volumes(settings: Settings) -> None:
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text("utf-8")
    user = POD["securityContext"]["runAsUser"]
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert f"\nUSER {user}\n" in dockerfile
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    mounts = {each["name"]: each["mountPath"] for each in CONTAINER["volumeMounts"]}
    assert settings.artifacts.startswith(f"file:{mounts['files']}/")
    assert mounts["tmp"] == "/tmp"
    assert set(mounts) == {each["name"] for each in POD["volumes"]}
