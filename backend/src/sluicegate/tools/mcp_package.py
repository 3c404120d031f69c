"""Whether the package mcp is installed, in a version that workers need."""

from __future__ import annotations

from importlib.util import find_spec

from sluicegate.errors import ConfigurationError


def require_mcp() -> None:
    """Check that the package that speaks the protocol is installed.

    Raises:
        ConfigurationError: It is not installed.
    """
    # Version 2 of mcp comes with its own HTTP client, httpx2.
    if find_spec("mcp") is None or find_spec("httpx2") is None:
        raise ConfigurationError(
            "Remote tool workers need version 2 of the package mcp; pip install 'mcp>=2.3'."
        )
