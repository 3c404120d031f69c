"""The files of ``deploy/`` match the server: ports, settings, probes and timeouts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluicegate import __version__
from sluicegate.errors import ConfigurationError, Unavailable
from sluicegate.server.app import build
from sluicegate.server.command_parser import command_parser
from sluicegate.server.settings import ENVIRONMENT_PREFIX, Settings, load_settings
from sluicegate.server.uvicorn_server import CLOSING_SECONDS
from sluicegate.stores.streams.from_url import open_stream_store
from tests.docs.markdown import DOCS, ROOT
from tests.real_stores.valkey import Valkey
from tests.server.exchange import client
from tests.server.fake_engine import FakeEngine
from tests.stores.builders import PATIENT_STREAMS

DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
REPLICAS = [name for name in SERVICES if name.startswith("sluicegate-")]
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")
LOCK = (DEPLOY / "requirements.lock").read_text("utf-8")
PROXY = (DEPLOY / "Caddyfile").read_text("utf-8")
GIVEN = {"POSTGRES_PASSWORD": "secret", "VALKEY_PASSWORD": "valkey-secret"}
KEEP_ALIVE_OF_THE_SERVER = 75


def substituted(text: str) -> str:
    """A text after variable substitution by Compose, with only the passwords set."""
    return re.sub(
        r"\$\{(\w+):([-?])([^}]*)\}",
        lambda found: GIVEN.get(found[1], found[3] if found[2] == "-" else ""),
        text,
    )


def environment(replica: str) -> dict[str, str]:
    found: dict[str, str] = SERVICES[replica]["environment"]
    return {name: substituted(value) for name, value in found.items()}


@pytest.fixture(params=REPLICAS)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """The settings of a replica, with the tokens in a local file."""
    variables = environment(request.param)
    assert variables["SLUICEGATE_AUTH"] == "bearer:/run/secrets/tokens"
    tokens = tmp_path / "tokens"
    tokens.write_text("")
    return load_settings(variables, {"auth": f"bearer:{tokens}", "page": False})


def seconds(text: str) -> int:
    found = re.fullmatch(r"(\d+)s", text)
    assert found is not None
    return int(found[1])


def test_there_are_two_identical_replicas() -> None:
    assert len(REPLICAS) == 2
    assert SERVICES[REPLICAS[0]] == SERVICES[REPLICAS[1]]


@pytest.mark.parametrize("replica", REPLICAS)
def test_every_variable_is_a_setting_and_the_command_exists(replica: str) -> None:
    fields = {
        name.removeprefix(ENVIRONMENT_PREFIX).lower()
        for name in environment(replica)
        if name.startswith(ENVIRONMENT_PREFIX)
    }
    assert fields <= set(Settings.model_fields)
    program, *arguments = SERVICES[replica]["command"]
    assert program == "sluicegate"
    command_parser().parse_args(arguments)


async def test_the_replicas_share_their_stores(settings: Settings) -> None:
    user, host = "sluicegate:secret", "postgres"
    assert settings.sessions == f"postgresql+asyncpg://{user}@{host}/sluicegate"
    database = SERVICES[host]["environment"]
    assert (database["POSTGRES_USER"], database["POSTGRES_DB"]) == ("sluicegate", "sluicegate")
    assert substituted(database["POSTGRES_PASSWORD"]) == "secret"
    assert settings.streams == "valkey://:valkey-secret@valkey:6379/0"
    assert "valkey" in SERVICES
    [files] = SERVICES[REPLICAS[0]]["volumes"]
    assert settings.artifacts == f"file:{files.partition(':')[2]}"
    assert files.partition(":")[0] in COMPOSE["volumes"]


def probe(replica: str) -> str:
    """The URL of the health check of a replica."""
    [url] = re.findall(r"urlopen\('([^']+)'", SERVICES[replica]["healthcheck"]["test"][-1])
    return str(url)


async def test_the_probes_are_answered_directly_and_through_the_proxy(settings: Settings) -> None:
    engine = FakeEngine()
    app = build(engine.open, settings).app
    host = substituted(SERVICES["proxy"]["environment"]["PUBLIC_HOST"])
    [path] = re.findall(r"health_uri (\S+)", PROXY)
    asked = [(probe(REPLICAS[0]), None), (f"http://{REPLICAS[0]}:{settings.port}{path}", host)]
    assert "Host {$PUBLIC_HOST}" in PROXY
    for url, name in asked:
        assert f":{settings.port}/readyz" in url
        headers = {} if name is None else {"host": name}
        async with client(app, peer="172.18.0.5") as http:
            assert (await http.get(url, headers=headers)).status_code == 200
            engine.not_ready = Unavailable()
            assert (await http.get(url, headers=headers)).status_code == 503
            engine.not_ready = None


async def test_the_proxy_reaches_every_replica_and_its_port_is_published(
    settings: Settings,
) -> None:
    upstreams = " ".join(f"{name}:{settings.port}" for name in REPLICAS)
    assert f"reverse_proxy {upstreams} {{" in PROXY
    [port] = SERVICES["proxy"]["ports"]
    outside, inside = port.split(":")
    assert f"\n:{inside} {{" in PROXY
    assert settings.public_url == f"http://localhost:{outside}"
    app = build(FakeEngine().open, settings).app
    async with client(app, base_url=settings.public_url) as http:
        response = await http.get("/api/chats", headers={"origin": settings.public_url})
    assert response.status_code == 401


def test_no_timeout_is_shorter_than_the_operation_it_covers(settings: Settings) -> None:
    replica = SERVICES[REPLICAS[0]]
    stop = seconds(replica["stop_grace_period"])
    assert stop > settings.shutdown_timeout + CLOSING_SECONDS
    assert settings.shutdown_timeout >= settings.tool_timeout
    [keepalive] = re.findall(r"keepalive (\d+s)", PROXY)
    assert settings.keep_alive < seconds(keepalive) < KEEP_ALIVE_OF_THE_SERVER
    assert "flush_interval -1" in PROXY
    assert not re.search(r"\b(read|write|response_header|stream)_timeout\b|\bencode\b", PROXY)


def test_every_image_has_a_pinned_version() -> None:
    images = [substituted(service["image"]) for service in SERVICES.values()]
    [base] = re.findall(r"^ARG PYTHON_IMAGE=(\S+)", DOCKERFILE, re.MULTILINE)
    assert substituted(SERVICES[REPLICAS[0]]["build"]["args"]["PYTHON_IMAGE"]) == base
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${PYTHON_IMAGE}"] * 2
    for image in [*images, base]:
        assert re.fullmatch(r"[a-z/]+:\d+\.\d+(\.\d+)?(-[a-z]+)?", image)
    assert f"sluicegate:{__version__}" in images


@pytest.mark.parametrize("replica", REPLICAS)
def test_a_replica_is_an_ordinary_user_and_its_image_is_read_only(replica: str) -> None:
    service = SERVICES[replica]
    assert service["read_only"] is True
    assert service["tmpfs"] == ["/tmp"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    [user] = re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE)
    # A number: Kubernetes can tell that it is not root.
    assert int(user) > 0
    assert "user" not in service


def test_every_image_can_be_pinned_by_digest() -> None:
    page = (DOCS / "how-to" / "scale-out.md").read_text("utf-8")
    for service in SERVICES.values():
        image = service["image"]
        if not image.startswith("sluicegate:"):
            [variable] = re.findall(r"^\$\{(\w+_IMAGE):-", image)
            assert f"`{variable}`" in page
    assert "`PYTHON_IMAGE`" in page


def test_every_package_of_the_image_is_installed_by_its_hash() -> None:
    assert (
        "pip install --no-cache-dir --no-deps --require-hashes -r /tmp/requirements.lock"
        in DOCKERFILE
    )
    assert re.findall(r"pip install .*\.whl", DOCKERFILE) == [
        "pip install --no-cache-dir --no-deps --no-index /tmp/sluicegate-*.whl"
    ]
    # The stage that runs installs nothing itself.
    _, runs = DOCKERFILE.rsplit("FROM ", 1)
    assert "pip" not in runs
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", LOCK, re.MULTILINE))
    blocks = re.split(r"\n(?=\S)", LOCK.strip())
    assert len(blocks) == len(pinned) > 50
    assert all("--hash=sha256:" in block for block in blocks)
    tested = (ROOT / "requirements.lock").read_text("utf-8")
    assert pinned.items() <= dict(re.findall(r"^([\w.-]+)==(\S+)", tested, re.MULTILINE)).items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["postgresql"], *extras["valkey"]]
    assert {re.match(r"[\w-]+", each)[0] for each in wanted} <= set(pinned)  # type: ignore[index]


@pytest.fixture
def guarded_valkey(tmp_path: Path) -> Iterator[Valkey]:
    """A server with the configuration that the command of the service writes."""
    [command] = [part for part in SERVICES["valkey"]["command"] if "requirepass" in part]
    [line] = re.findall(r'echo "(requirepass [^"]+)" > /tmp/valkey.conf', command)
    assert "exec valkey-server /tmp/valkey.conf" in command
    server = Valkey(
        tmp_path / "valkey", configuration=line.replace("$$VALKEY_PASSWORD", "valkey-secret")
    )
    server.start()
    yield server
    server.kill()


async def test_valkey_answers_only_with_the_password(
    settings: Settings, guarded_valkey: Valkey
) -> None:
    url = settings.streams.replace("valkey:6379", f"127.0.0.1:{guarded_valkey.port}")
    store = await open_stream_store(url, timings=PATIENT_STREAMS)
    assert await store.check()
    await store.aclose()
    with pytest.raises(ConfigurationError, match="refuses this client"):
        await open_stream_store(url.replace(":valkey-secret@", ""), timings=PATIENT_STREAMS)


async def test_the_page_names_urls_that_can_be_opened() -> None:
    page = (DOCS / "how-to" / "scale-out.md").read_text("utf-8")
    [streams] = re.findall(r"SLUICEGATE_STREAMS=(\S+)\n", page)
    store = await open_stream_store(streams.replace("host:6379", "127.0.0.1:1"))
    assert store.is_shared
    await store.aclose()
    urls = re.findall(r"SLUICEGATE_SESSIONS=(\S+)\n", page)
    assert urls == ["postgresql+asyncpg://user:password@host/database"]
