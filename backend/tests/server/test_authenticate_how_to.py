"""The snippets of the documentation on authentication, run unchanged."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, OctKey, RSAKey
from starlette.applications import Starlette

from tests.server.exchange import client, started
from tests.server.fake_engine import FakeEngine, fake_app

HOW_TO = Path(__file__).parents[3] / "docs" / "how-to"
ISSUER, AUDIENCE = "https://issuer.example", "sluicegate"
FAR = 8_102_503_859
"""The year 2226."""

# Made by @auth/core 0.41.3 and next-auth 4.24.15 for {"name": "Ada", "sub": "user-1", ...}.
SECRET = "a-secret-for-the-tests-of-the-documentation"
COOKIES = json.loads((Path(__file__).with_name("nextauth_cookies.json")).read_text("utf-8"))


def load(name: str) -> ModuleType:
    """Run a snippet as a separate module."""
    spec = importlib.util.spec_from_file_location(f"snippet_{name}", snippet(name))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def snippet(name: str) -> Path:
    return HOW_TO / "snippets" / f"{name}.py"


@pytest.fixture(autouse=True)
def modules() -> Iterator[None]:
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("snippet_"):
            del sys.modules[name]


@pytest.mark.parametrize("name", ["jwt_bearer", "nextauth_cookie", "mounted"])
def test_the_documentation_shows_the_snippet_that_is_tested(name: str) -> None:
    shown = f"```python\n{snippet(name).read_text('utf-8')}```"
    assert shown in (HOW_TO / "authenticate.md").read_text("utf-8")


def test_the_documentation_shows_the_hash_of_its_token() -> None:
    digest = hashlib.sha256(b"THE-TOKEN").hexdigest()
    assert f"sha256:{digest} ada\n" in (HOW_TO / "authenticate.md").read_text("utf-8")


async def test_the_mounted_application_answers_below_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parent = load("mounted").api
    async with started(parent), client(parent) as http:
        assert (await http.get("/agent/readyz")).status_code == 200
        assert (await http.get("/agent/api/chats")).json() == {"chats": [], "next": None}


async def status_of(module: ModuleType, **headers: str) -> tuple[int, Any]:
    """Call with these headers; return the status and the user of the engine call."""
    engine = FakeEngine()
    app = fake_app(engine, authenticate=module.authenticate)
    async with client(app) as http:
        response = await http.get("/api/chats", headers=headers)
    return response.status_code, engine.calls[0][1] if engine.calls else None


@pytest.fixture(scope="module")
def key() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": "k1", "use": "sig", "alg": "RS256"})


@pytest.fixture
def bearer(key: RSAKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    keys = KeySet([key]).as_dict(private=False)
    (tmp_path / "jwks.json").write_text(json.dumps(keys))
    monkeypatch.setenv("JWKS_FILE", str(tmp_path / "jwks.json"))
    monkeypatch.setenv("JWT_ISSUER", ISSUER)
    monkeypatch.setenv("JWT_AUDIENCE", AUDIENCE)
    return load("jwt_bearer")


GOOD = {"iss": ISSUER, "aud": AUDIENCE, "sub": "user-1", "exp": FAR}


def token(key: RSAKey, **changes: Any) -> str:
    claims = {name: value for name, value in (GOOD | changes).items() if value is not None}
    return jwt.encode({"alg": "RS256", "kid": "k1"}, claims, key)


async def test_a_signed_token_identifies_its_user(bearer: ModuleType, key: RSAKey) -> None:
    assert isinstance(bearer.app, Starlette)
    assert await status_of(bearer, authorization=f"Bearer {token(key)}") == (200, "user-1")


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": 1},
        {"exp": None},
        {"sub": None},
        {"iss": "https://other.example"},
        {"aud": "another"},
        {"nbf": FAR},
    ],
    ids=str,
)
async def test_a_token_that_expired_or_has_another_audience_is_refused(
    bearer: ModuleType, key: RSAKey, changes: dict[str, Any]
) -> None:
    given = f"Bearer {token(key, **changes)}"
    assert await status_of(bearer, authorization=given) == (401, None)


async def test_a_token_with_a_foreign_signature_is_refused(bearer: ModuleType, key: RSAKey) -> None:
    other = RSAKey.generate_key(2048, {"kid": "k1"})
    shared = OctKey.import_key(json.dumps(key.as_dict(private=False)).encode())
    confused = jwt.encode({"alg": "HS256", "kid": "k1"}, GOOD, shared)
    unsigned = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1c2VyLTEifQ."
    for forged in (token(other), confused, unsigned, token(key)[:-4] + "AAAA", "x", ""):
        assert await status_of(bearer, authorization=f"Bearer {forged}") == (401, None)
    assert await status_of(bearer, authorization=f"Basic {token(key)}") == (401, None)
    assert await status_of(bearer) == (401, None)


@pytest.fixture
def nextauth(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    monkeypatch.setenv("AUTH_SECRET", getattr(request, "param", SECRET))
    monkeypatch.delenv("AUTH_COOKIE", raising=False)
    return load("nextauth_cookie")


async def test_the_cookie_of_a_session_identifies_its_user(nextauth: ModuleType) -> None:
    assert isinstance(nextauth.app, Starlette)
    cookie = f"other=1; authjs.session-token={COOKIES['authjs.session-token']}"
    assert await status_of(nextauth, cookie=cookie) == (200, "user-1")


async def test_the_cookie_over_https_has_its_own_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "__Secure-authjs.session-token"
    monkeypatch.setenv("AUTH_SECRET", SECRET)
    monkeypatch.setenv("AUTH_COOKIE", name)
    module = load("nextauth_cookie")
    assert await status_of(module, cookie=f"{name}={COOKIES[name]}") == (200, "user-1")
    plain = f"{name}={COOKIES['authjs.session-token']}"
    assert await status_of(module, cookie=plain) == (401, None)


async def test_a_session_in_several_cookies_is_joined(nextauth: ModuleType) -> None:
    whole = COOKIES["authjs.session-token"]
    size = len(whole) // 11
    pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
    assert len(pieces) > 10
    named = [f"authjs.session-token.{number}={piece}" for number, piece in enumerate(pieces)]
    assert await status_of(nextauth, cookie="; ".join(reversed(named))) == (200, "user-1")


@pytest.mark.parametrize("nextauth", ["another secret"], indirect=True)
async def test_a_cookie_of_another_application_is_refused(nextauth: ModuleType) -> None:
    cookie = f"authjs.session-token={COOKIES['authjs.session-token']}"
    assert await status_of(nextauth, cookie=cookie) == (401, None)


@pytest.mark.parametrize("value", [COOKIES["expired"], "", "x", "a.b.c.d.e"])
async def test_an_expired_or_invalid_session_is_refused(nextauth: ModuleType, value: str) -> None:
    assert await status_of(nextauth, cookie=f"authjs.session-token={value}") == (401, None)


async def test_without_a_cookie_the_call_is_refused(nextauth: ModuleType) -> None:
    assert await status_of(nextauth) == (401, None)
    assert await status_of(nextauth, cookie="authjs.session-token.x=1") == (401, None)


async def test_the_cookie_of_next_auth_4_needs_the_three_changes(
    monkeypatch: pytest.MonkeyPatch, nextauth: ModuleType
) -> None:
    name = "next-auth.session-token"
    text = (HOW_TO / "authenticate.md").read_text("utf-8")
    derivation = 'HKDF(SHA256(), 32, b"", b"NextAuth.js Generated Encryption Key").derive(SECRET)'
    assert f"`{name}`" in text
    assert f"`{derivation}`" in text
    assert '`["dir", "A256GCM"]`' in text
    key = eval(derivation, vars(nextauth))
    monkeypatch.setattr(nextauth, "COOKIE", name)
    monkeypatch.setattr(nextauth, "KEY", OctKey.import_key(key))
    registry = nextauth.JWERegistry(algorithms=["dir", "A256GCM"])
    monkeypatch.setattr(nextauth, "ENCRYPTION", registry)
    assert await status_of(nextauth, cookie=f"{name}={COOKIES[name]}") == (200, "user-1")
