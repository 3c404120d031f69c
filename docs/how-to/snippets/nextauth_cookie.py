"""A server for the users of a Next.js application: ``uvicorn nextauth_cookie:app``."""

import os

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwe import JWERegistry
from joserfc.jwk import OctKey
from starlette.requests import HTTPConnection

from sluicegate import create_app
from sluicegate.demo.agent import root_agent

SECRET = os.environ["AUTH_SECRET"].encode()
# Over HTTPS the cookie's name begins with __Secure-, and the name is part of the key.
COOKIE = os.environ.get("AUTH_COOKIE", "authjs.session-token")

KEY = OctKey.import_key(
    HKDF(
        SHA256(), 64, COOKIE.encode(), f"Auth.js Generated Encryption Key ({COOKIE})".encode()
    ).derive(SECRET)
)
ENCRYPTION = JWERegistry(algorithms=["dir", "A256CBC-HS512"])
CLAIMS = jwt.JWTClaimsRegistry(exp={"essential": True}, sub={"essential": True})


async def authenticate(connection: HTTPConnection) -> str | None:
    # A long session is spread over COOKIE.0, COOKIE.1 and so on.
    parts = {
        int(name.removeprefix(COOKIE).lstrip(".") or 0): value
        for name, value in connection.cookies.items()
        if name == COOKIE or name.removeprefix(f"{COOKIE}.").isdecimal()
    }
    token = "".join(parts[number] for number in sorted(parts))
    try:
        claims = jwt.decode(token, KEY, registry=ENCRYPTION).claims
        CLAIMS.validate(claims)
    except (JoseError, ValueError):
        return None
    return str(claims["sub"])


app = create_app(
    root_agent,
    authenticate=authenticate,
    origins=[os.environ.get("APP_ORIGIN", "http://localhost:3000")],
)
