"""An MCP server over stdio (2025-11-25) that imports nothing, so that it starts at once."""

import json
import os
import sys
from typing import Any

TOOLS = ("ask", "count", "die", "report", "wait")
FORM = {"type": "object", "properties": {"name": {"type": "string", "default": "Ann"}}}
count = 0
asking: list[Any] = []
"""The ids of the calls that wait for an answer."""


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(name: str, meta: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a call; None if it never ends."""
    global count
    if name == "die":
        os._exit(3)
    if name == "wait":
        return None
    if name == "ask":
        params = {"mode": "form", "message": "Whose name?", "requestedSchema": FORM}
        send(id=f"ask {len(asking)}", method="elicitation/create", params=params)
        return None
    if name == "report":
        progress = {"progressToken": meta["progressToken"], "progress": 1, "message": "half"}
        send(method="notifications/progress", params=progress)
    count += 1
    seen = {"calls": count, "process": os.getpid()}
    return {**seen, "secret": os.environ.get("SECRET"), "argument": sys.argv[1]}


for line in sys.stdin:
    request = json.loads(line)
    params = request.get("params") or {}
    if "method" not in request:
        answer = request.get("result") or request["error"]
        content = [{"type": "text", "text": json.dumps(answer)}]
        send(id=asking.pop(0), result={"content": content, "structuredContent": answer})
        continue
    if params.get("name") == "ask":
        asking.append(request["id"])
    match request["method"]:
        case "initialize":
            result: dict[str, Any] | None = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "stdio", "version": "1"},
            }
        case "tools/list":
            result = {
                "tools": [{"name": each, "inputSchema": {"type": "object"}} for each in TOOLS]
            }
        case "tools/call":
            made = call(params["name"], params["_meta"])
            content = [{"type": "text", "text": json.dumps(made)}]
            result = None if made is None else {"content": content, "structuredContent": made}
        case method:
            result = None
            if "id" in request:
                send(id=request["id"], error={"code": -32601, "message": f"no {method}"})
    if result is not None:
        send(id=request["id"], result=result)
