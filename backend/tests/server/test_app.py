"""The complete application: routes, errors, the lifetime of its engine, and mounting."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import fastapi
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.types import ASGIApp

from sluicegate.engine.interface import Engine
from sluicegate.errors import (
    ConfigurationError,
    RequestError,
    StoreUnavailable,
    TooManyRequests,
    Unavailable,
)
from sluicegate.server.engine_holder import EngineHolder
from tests.server.exchange import chat_body, chunks, client, started
from tests.server.fake_engine import FakeEngine, fake_app

SECRET = "sk-very-secret"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "unknown"),
        ("GET", "/api", 404, "unknown"),
        ("GET", "/api/", 404, "unknown"),
        ("POST", "/api/chat/", 404, "unknown"),
        ("GET", "/chats", 404, "unknown"),
        ("GET", "/api/chat", 405, "method_not_allowed"),
        ("PUT", "/api/chats/c1", 405, "method_not_allowed"),
        ("POST", "/api/chats", 405, "method_not_allowed"),
        ("DELETE", "/healthz", 405, "method_not_allowed"),
        ("POST", "/api/chat/ws", 405, "method_not_allowed"),
        ("GET", "/api/chat/ws", 426, "upgrade_required"),
        ("GET", "/api/live", 426, "upgrade_required"),
    ],
)
async def test_an_unknown_path_or_method_gets_the_standard_error_body(
    engine: FakeEngine, method: str, path: str, status: int, code: str
) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.request(method, path)
    assert (response.status_code, response.headers["x-error-code"]) == (status, code)
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.text.endswith(".")
    assert engine.calls == []


async def test_a_disallowed_method_is_answered_with_the_allowed_methods(
    engine: FakeEngine,
) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.put("/api/chats/c1")
    assert set(response.headers["allow"].split(", ")) == {"GET", "PATCH", "DELETE"}


@pytest.mark.parametrize(
    ("error", "status", "retry_after"),
    [
        (TooManyRequests(), 429, "10"),
        (Unavailable(), 503, "5"),
        (Unavailable(retry_after=7), 503, "7"),
        (StoreUnavailable(SECRET), 503, "5"),
    ],
)
async def test_a_refusal_to_be_retried_contains_retry_after(
    engine: FakeEngine,
    error: Exception,
    status: int,
    retry_after: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with client(fake_app(engine)) as http:
        await http.get("/api/chats")
        engine.refusal = error
        response = await http.post("/api/chat", json=chat_body())
    assert (response.status_code, response.headers["retry-after"]) == (status, retry_after)
    assert SECRET not in response.text + caplog.text
    assert ("a store is unavailable" in caplog.text) == isinstance(error, StoreUnavailable)


async def test_an_unexpected_error_is_one_sentence_with_the_id_of_its_log_line(
    engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    async with client(fake_app(engine)) as http:
        await http.get("/api/chats")
        engine.refusal = RuntimeError(SECRET)
        response = await http.get("/api/chats")
    assert (response.status_code, response.headers["x-error-code"]) == (500, "internal")
    [error_id] = re.findall(r"\b[0-9a-f]{8}\b", response.text)
    assert error_id in caplog.text
    assert "RuntimeError" in caplog.text
    assert "fake_engine.py" in caplog.text
    assert SECRET not in response.text + caplog.text


async def test_the_health_check_does_not_depend_on_the_database(engine: FakeEngine) -> None:
    async with client(fake_app(engine)) as http:
        assert (await http.get("/readyz")).status_code == 200
        engine.notes = ["streams are kept in memory"]
        noted = await http.get("/readyz")
        engine.not_ready = Unavailable()
        ready = await http.get("/readyz")
        healthy = await http.get("/healthz")
    assert (noted.status_code, noted.text) == (200, "ok\nnote: streams are kept in memory\n")
    assert (ready.status_code, ready.headers["x-error-code"]) == (503, "unavailable")
    assert healthy.status_code == 200


@pytest.mark.parametrize("prefix", ["", "/v1", "/a/b"])
async def test_the_prefix_applies_only_to_the_api(engine: FakeEngine, prefix: str) -> None:
    async with client(fake_app(engine, prefix=prefix)) as http:
        assert (await http.get(f"{prefix}/chats")).status_code == 200
        assert (await http.get(f"{prefix}/openapi.json")).status_code == 200
        assert (await http.get("/api/chats")).status_code == 404
        assert (await http.get("/healthz")).status_code == 200
        page = await http.get("/")
    assert f'name="sluicegate-api" content="{prefix[1:] or "."}"' in page.text


async def test_the_engine_lives_as_long_as_the_application(engine: FakeEngine) -> None:
    app = fake_app(engine)
    async with started(app):
        assert (engine.opened, engine.closed) == (1, 0)
        async with client(app) as http:
            assert (await http.get("/api/chats")).status_code == 200
    assert (engine.opened, engine.closed) == (1, 1)


async def test_an_engine_that_cannot_open_stops_the_application(engine: FakeEngine) -> None:
    engine.refusal = ConfigurationError("The tool x is refused.")
    with pytest.raises(ConfigurationError, match="The tool x is refused"):
        async with started(fake_app(engine)):
            pass


def starlette_parent(app: Starlette) -> ASGIApp:
    return Starlette(routes=[Mount("/agents/one", app)])


def fastapi_parent(app: Starlette) -> ASGIApp:
    parent = fastapi.FastAPI()
    parent.mount("/agents/one", app)
    return parent


@pytest.mark.parametrize("inside", [starlette_parent, fastapi_parent])
def test_a_mounted_application_opens_with_its_first_request_and_closes_with_the_loop(
    engine: FakeEngine, inside: Callable[[Starlette], ASGIApp]
) -> None:
    parent = inside(fake_app(engine))

    async def use() -> None:
        async with started(parent), client(parent) as http:
            assert engine.opened == 0
            streamed = await http.post("/agents/one/api/chat", json=chat_body())
            assert chunks(streamed.text)[0]["type"] == "start"
            chats = await http.get("/agents/one/api/chats")
            assert chats.json() == {"chats": [], "next": None}
            assert 'src="./assets/' in (await http.get("/agents/one/")).text
            missing = await http.get("/agents/one/api/nothing")
            assert (missing.status_code, missing.headers["x-error-code"]) == (404, "unknown")
            assert (engine.opened, engine.closed) == (1, 0)

    asyncio.run(use())
    assert (engine.opened, engine.closed) == (1, 1)


async def test_a_parent_may_open_and_close_a_mounted_application_itself(
    engine: FakeEngine,
) -> None:
    app = fake_app(engine)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with app.router.lifespan_context(app):
            yield

    parent = Starlette(routes=[Mount("/agent", app)], lifespan=lifespan)
    async with started(parent), client(parent) as http:
        assert engine.opened == 1
        assert (await http.get("/agent/api/chats")).status_code == 200
    assert (engine.opened, engine.closed) == (1, 1)


def test_each_event_loop_gets_its_own_engine(engine: FakeEngine) -> None:
    app = fake_app(engine)

    async def use() -> None:
        async with client(app) as http:
            assert (await http.get("/api/chats")).status_code == 200

    asyncio.run(use())
    asyncio.run(use())
    assert (engine.opened, engine.closed) == (2, 2)


async def test_concurrent_first_requests_open_one_engine() -> None:
    opened, go_on = 0, asyncio.Event()

    async def slowly() -> Engine:
        nonlocal opened
        opened += 1
        await go_on.wait()
        return cast("Engine", FakeEngine())

    engine = EngineHolder(slowly)
    waiting = [asyncio.create_task(engine.get()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    go_on.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1] is results[2]
    assert opened == 1
    await engine.close()


async def test_opening_the_engine_is_retried_after_a_failure(
    engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.refusal = ConfigurationError("The tool x is refused.")
    async with client(fake_app(engine)) as http:
        refused = await http.get("/api/chats")
        engine.refusal = None
        answered = await http.get("/api/chats")
    assert (refused.status_code, refused.headers["x-error-code"]) == (503, "unavailable")
    assert "The tool x is refused." not in refused.text
    assert "The tool x is refused." in caplog.text
    assert answered.status_code == 200


async def test_a_refusal_uses_little_cpu_time(engine: FakeEngine) -> None:
    took = []
    async with client(fake_app(engine)) as http:
        for _ in range(3):
            began = time.process_time()
            await http.get("/nowhere")
            took.append(time.process_time() - began)
    assert min(took) < 0.1


def resolve(document: dict[str, Any], path: str, method: str) -> dict[str, Any]:
    return cast("dict[str, Any]", document["paths"][path][method.lower()])


async def test_the_openapi_document_contains_every_route_and_method(engine: FakeEngine) -> None:
    app = fake_app(engine)
    async with client(app) as http:
        document = (await http.get("/api/openapi.json")).json()
    routes = {
        route.path.replace(":path}", "}"): route.methods
        for route in app.routes
        if isinstance(route, Route)
    }
    sockets = [route.path for route in app.routes if isinstance(route, WebSocketRoute)]
    assert sockets == list(document["x-websockets"]) == ["/api/chat/ws", "/api/live"]
    for path in sockets:
        assert routes.pop(path) == {"GET"}
        assert {"101", "426"} <= document["x-websockets"][path]["responses"].keys()
    described = {
        path: {method.upper() for method in methods} for path, methods in document["paths"].items()
    }
    assert described == routes
    assert document["openapi"] == "3.1.0"
    [chat, *_] = document["x-websockets"]["/api/live"]["parameters"]
    assert (chat["name"], chat["required"]) == ("chat", True)


async def test_the_openapi_document_contains_streams_and_every_error_code(
    engine: FakeEngine,
) -> None:
    async with client(fake_app(engine)) as http:
        document = (await http.get("/api/openapi.json")).json()
    send = resolve(document, "/api/chat", "POST")
    assert "text/event-stream" in send["responses"]["200"]["content"]
    assert (
        "text/event-stream"
        in (resolve(document, "/api/chat/{id}/stream", "GET")["responses"]["200"]["content"])
    )
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    operations += document["x-websockets"].values()
    codes = {
        code
        for operation in operations
        for answer in operation["responses"].values()
        for code in answer.get("headers", {}).get("x-error-code", {"schema": {"enum": []}})[
            "schema"
        ]["enum"]
    }
    # Only a live socket is closed because a newer one has taken its chat over.
    own = {kind.code for kind in RequestError.__subclasses__()} - {"taken_over"}
    assert codes == own | {"host", "internal", "method_not_allowed"}
    for operation in operations:
        for status in ("429", "503"):
            if status in operation["responses"]:
                assert "retry-after" in operation["responses"][status]["headers"]
