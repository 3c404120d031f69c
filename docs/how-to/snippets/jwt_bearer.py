"""A server for callers that carry a JWT: ``uvicorn jwt_bearer:app``."""

import json
import os
from pathlib import Path

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from starlette.requests import HTTPConnection

from sluicegate import create_app
from sluicegate.demo.agent import root_agent

KEYS = KeySet.import_key_set(json.loads(Path(os.environ["JWKS_FILE"]).read_text()))
CLAIMS = jwt.JWTClaimsRegistry(
    iss={"essential": True, "value": os.environ["JWT_ISSUER"]},
    aud={"essential": True, "value": os.environ["JWT_AUDIENCE"]},
    exp={"essential": True},
    sub={"essential": True},
)


async def authenticate(connection: HTTPConnection) -> str | None:
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    try:
        claims = jwt.decode(token.strip(), KEYS, algorithms=["RS256", "ES256"]).claims
        CLAIMS.validate(claims)
    except (JoseError, ValueError):
        return None
    return str(claims["sub"])


app = create_app(root_agent, authenticate=authenticate)
