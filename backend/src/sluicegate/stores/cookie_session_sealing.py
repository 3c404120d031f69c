"""Ids of cookie sessions, and tokens sealed with them."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE: Final = 12


def new_id() -> str:
    """Return a random id of 256 bits."""
    return secrets.token_urlsafe(32)


def digest_of(session_id: str) -> str:
    """Return the digest by which a session is stored."""
    return _derive("digest", session_id).hex()


def seal(session_id: str, token: str) -> str:
    """Encrypt a token with a key that is derived from the id, and used only once."""
    nonce = secrets.token_bytes(_NONCE)
    sealed = AESGCM(_derive("key", session_id)).encrypt(nonce, token.encode(), None)
    return (nonce + sealed).hex()


def unseal(session_id: str, sealed: str) -> str | None:
    """Decrypt a token; None if it is another session's, or was changed."""
    try:
        content = bytes.fromhex(sealed)
        key = AESGCM(_derive("key", session_id))
        return key.decrypt(content[:_NONCE], content[_NONCE:], None).decode()
    except (InvalidTag, ValueError):
        return None


def _derive(purpose: str, session_id: str) -> bytes:
    # The id is random and long, so a plain hash with a purpose derives independent values.
    return hashlib.sha256(f"sluicegate cookie session {purpose}\0{session_id}".encode()).digest()
