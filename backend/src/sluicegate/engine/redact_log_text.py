"""Text without credentials, for the log of the operator."""

from __future__ import annotations

import os
import re
from typing import Final

_MAX_TEXT: Final = 300
_MASK: Final = "***"
_SECRET_NAMES: Final = re.compile(r"(?i)key|token|secret|passw|credential")
_SECRETS: Final = (
    # A name and its value, as in JSON, in a query, in a header.
    re.compile(
        r"""(?ix)
        ( (?:api[-_ ]?key|access[-_ ]?key|token|secret|password|passwd|credentials?|authorization)
          ["']? \s* (?:[:=]|\bis\b|\bprovided:) \s* ["']? (?:bearer\s+|basic\s+)? )
        [^\s"',;&)}\]]+"""
    ),
    re.compile(r"(?i)(\bbearer\s+)[^\s\"',;]+"),
    re.compile(r"(://[^/\s:@]*:)[^/\s@]+(?=@)"),
    # Forms of keys that say what they are: OpenAI, Anthropic, Google, GitHub, Slack, AWS, JWT.
    re.compile(
        r"()\b(?:sk|pk|rk)[-_][\w*.-]{6,}|()\bAIza[\w-]{10,}|()\bgh[a-z]_\w{10,}"
        r"|()\bxox[a-z]-[\w-]{8,}|()\bAKIA\w{10,}|()\beyJ[\w-]+\.[\w-]+\.[\w-]*"
    ),
    # Anything long without a space that mixes digits and letters.
    re.compile(r"()\b(?=[\w+/-]*\d)(?=[\w+/-]*[A-Za-z])[\w+/-]{40,}={0,2}"),
)


def without_secrets(text: str) -> str:
    """Return a text on one line, without credentials, with at most 300 characters."""
    line = " ".join(text.split())
    for value in _known_secrets():
        line = line.replace(value, _MASK)
    for pattern in _SECRETS:
        line = pattern.sub(lambda found: f"{found[1] or ''}{_MASK}", line)
    return line if len(line) <= _MAX_TEXT else f"{line[: _MAX_TEXT - 1]}…"


def _known_secrets() -> list[str]:
    """Return the values of environment variables that are named as credentials are."""
    values = (value for name, value in os.environ.items() if _SECRET_NAMES.search(name))
    return sorted((value for value in values if len(value) >= 8), key=len, reverse=True)
