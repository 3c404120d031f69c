"""A conversation with the running server, whose worker is the scenario of the conformance suite.

The suite appends the address of its server to the command and names the scenario in the
environment. The agent calls the tools of `CALLS`, and a person approves each call.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "backend"))

from tests.engine.stage import calls, says, scripted
from tests.server.page import Page, served

PARAMETERS: dict[str, Any] = {
    "region": "us-west1",
    "priority": 42,
    "verbose": False,
    "debug": True,
    "empty_val": "",
    "method_val": "test-method",
    "float_val": 3.14159,
    "non_ascii_val": "Hello, 世界",
    "whitespace_val": " padded ",
    "leading_space_val": " us-west1",
    "trailing_space_val": "us-west1 ",
    "internal_space_val": "us west 1",
    "control_char_val": "line1\nline2",
    "crlf_val": "line1\r\nline2",
    "tab_val": "\tindented",
    "query": "SELECT * FROM users",
}
CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "tools_call": [("add_numbers", {"a": 5, "b": 3})],
    "sse-retry": [("test_reconnection", {})],
    "http-standard-headers": [("test_headers", {})],
    "http-invalid-tool-headers": [("valid_tool", {"region": "north"})],
    "elicitation-sep1034-client-defaults": [("test_client_elicitation_defaults", {})],
    "http-custom-headers": [
        ("test_custom_headers", PARAMETERS),
        ("test_custom_headers_null", {"region": "us-east1", "priority": 1, "query": "SELECT 1"}),
    ],
    "sep-2322-client-request-state": [
        ("test_mrtr_echo_state", {}),
        ("test_mrtr_unrelated", {}),
        ("test_mrtr_no_state", {}),
        ("test_mrtr_no_result_type", {}),
    ],
}


async def talk(address: str, scenario: str) -> None:
    """Say one thing, and approve what the agent wants to call."""
    wanted = [calls((f"worker_{name}", args)) for name, args in CALLS.get(scenario, [])]
    agent = scripted([*wanted, says("done")])
    with tempfile.TemporaryDirectory() as folder:
        async with served(agent, Path(folder), workers=(f"worker={address}",)) as http:
            page = Page(http)
            read = await page.say("go")
            while page.pending():
                read += await page.answer()
            print(*read, sep="\n")


asyncio.run(talk(sys.argv[1], os.environ.get("MCP_CONFORMANCE_SCENARIO", "")))
