"""Tools that the page itself declares, in the body field ``tools`` of a chat request.

The field is ``{NAME: {description, parameters}}`` with the JSON schema of the arguments, as
assistant-ui sends it. Names that the server's setting ``page_tools`` does not list are decoration.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluicegate.errors import Malformed, TooLarge
from sluicegate.wire.limits import check_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from sluicegate.wire.limits import RequestLimits


@dataclass(frozen=True)
class PageTool:
    """A tool that runs in the browser; ``schema`` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


def parse_page_tools(value: JsonValue, limits: RequestLimits) -> tuple[PageTool, ...]:
    """Read the tools that the page may bring, in the order in which they stand there.

    Raises:
        Malformed: one of them has no description, or its arguments are no object.
        TooLarge: one of them is over a limit.
    """
    if not limits.page_tools or value is None:
        return ()
    if not isinstance(value, dict):
        raise Malformed("The tools of the page must be an object by their names; send it so.")
    return tuple(
        _page_tool(name, entry, limits)
        for name, entry in value.items()
        if name in limits.page_tools
    )


def _page_tool(name: str, entry: JsonValue, limits: RequestLimits) -> PageTool:
    said = entry if isinstance(entry, dict) else {}
    description, schema = said.get("description"), said.get("parameters")
    if not isinstance(description, str) or not description.strip():
        raise Malformed(f"The tool {name} of the page has no description; send one.")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise Malformed(
            f"The parameters of the tool {name} of the page must be a JSON schema of the type "
            "object; send one."
        )
    check_size(schema, limits)
    size = len(description.encode("utf-8", "replace"))
    size += len(json.dumps(schema, ensure_ascii=False).encode("utf-8", "replace"))
    if size > limits.page_tool_bytes:
        raise TooLarge(
            f"The tool {name} of the page has more than {limits.page_tool_bytes} bytes; say less."
        )
    return PageTool(name, description, schema)
