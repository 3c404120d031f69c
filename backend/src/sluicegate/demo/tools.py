"""The tools of the demo agent: free tools, gated tools and a client-side tool.

The approval card shows ``custom_metadata["title"]``. With ``SLUICEGATE_EFFECTS=FILE`` every effect
of a tool is recorded as one line of JSON in that file.
"""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, TypeVar

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from pydantic import BaseModel

from sluicegate.demo.document_archive import DocumentArchive
from sluicegate.demo.png_bar_chart import Colour, bar_chart
from sluicegate.demo.read_document import read_document
from sluicegate.errors import ToolError
from sluicegate.tools import Approvers, GatedCall, Role, client_tool, gated

EFFECTS_VARIABLE: Final = "SLUICEGATE_EFFECTS"
REPORT_SECONDS: Final = 3.0
TRANSFERRED_ALONE: Final = 1_000
"""Up to this amount the user of the chat approves alone."""
FINANCE: Final = Role("finance")

Tool = TypeVar("Tool", bound=BaseTool)

_WEATHER: Final = {
    "bern": ("sunny", 18),
    "cairo": ("hot and dry", 34),
    "london": ("cloudy", 14),
    "tokyo": ("light rain", 21),
}
_USERS: Final = ("Ada", "Alan", "Barbara", "Edsger", "Grace", "Katherine", "Ken", "Margaret")


def get_weather(city: str) -> dict[str, str | int]:
    """Tell the current weather in a city."""
    weather = _WEATHER.get(city.strip().lower())
    if weather is None:
        raise ToolError(f"There is no weather station in {city}.")
    sky, celsius = weather
    return {"city": city, "sky": sky, "celsius": celsius}


def search_database(query: str) -> dict[str, str | int | list[str]]:
    """Search the customer database. Reads personal data, changes nothing."""
    return {"query": query, "rows": len(_USERS), "names": list(_USERS)}


def update_database(change: str, rows: int) -> dict[str, str | int]:
    """Change rows of the customer database. This cannot be undone."""
    _record_effect("update_database", change=change, rows=rows)
    return {"change": change, "updated": rows}


def process_payment(recipient: str, amount: float, currency: str = "EUR") -> dict[str, str | float]:
    """Pay an amount of money to a recipient."""
    _record_effect("process_payment", recipient=recipient, amount=amount, currency=currency)
    digest = hashlib.sha256(f"{recipient} {amount} {currency}".encode()).hexdigest()
    return {"recipient": recipient, "paid": amount, "currency": currency, "receipt": digest[:8]}


def transfer_money(recipient: str, amount: float) -> dict[str, str | float]:
    """Transfer an amount in euros from the account of the company."""
    _record_effect("transfer_money", recipient=recipient, amount=amount)
    return {"recipient": recipient, "transferred": amount}


def approvers(call: GatedCall) -> Approvers | None:
    """Return who approves a transfer: the user alone, above `TRANSFERRED_ALONE` with finance."""
    if call.arguments["amount"] <= TRANSFERRED_ALONE:
        return None
    return Approvers(call.user, FINANCE, quorum=2)


class OrderItem(BaseModel):
    """Something to order, and how many of it."""

    article: str
    count: int
    gift: bool = False


class Address(BaseModel):
    """Where an order is delivered."""

    street: str
    city: str
    floor: str | None = None


def order_supplies(
    items: list[OrderItem],
    address: Address,
    delivery: datetime.date,
    shipping: Literal["standard", "express"] = "standard",
    notify: list[str] | None = None,
) -> dict[str, str | int]:
    """Order supplies for an office, and send the bill."""
    _record_effect(
        "order_supplies",
        items=[item.model_dump() for item in items],
        address=address.model_dump(),
        delivery=str(delivery),
        shipping=shipping,
        notify=notify,
    )
    return {"ordered": sum(item.count for item in items), "delivery": str(delivery)}


def request_leave(days: int, tool_context: ToolContext) -> dict[str, str | int]:
    """Request days of leave. The approver says how many are granted."""
    confirmation = tool_context.tool_confirmation
    if confirmation is None:
        tool_context.request_confirmation(
            hint="How many of these days are granted?",
            payload={"granted_days": days, "note": ""},
        )
        return {"status": "waiting"}
    if not confirmation.confirmed:
        return {"status": "denied"}
    answer = confirmation.payload or {"granted_days": days, "note": ""}
    _record_effect("request_leave", days=days, **answer)
    return {"requested": days, "granted": answer["granted_days"], "note": answer["note"]}


def draw_chart(title: str, values: list[float], colour: Colour = "blue") -> dict[str, Any]:
    """Draw a bar chart of some numbers."""
    picture = types.Blob(data=bar_chart(values, colour), mime_type="image/png")
    return {"title": title, "bars": len(values), "chart": types.Part(inline_data=picture)}


def slow_report(
    seconds: float = REPORT_SECONDS, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> FunctionTool:
    """Make the gated tool ``slow_report``, which takes the given time."""

    async def slow_report(topic: str) -> dict[str, str | int]:
        """Compile a report on a topic. This takes a few seconds."""
        _record_effect("slow_report", topic=topic)
        await sleep(seconds)
        return {"topic": topic, "pages": 12}

    return _titled(FunctionTool(slow_report, require_confirmation=True), "Compile a report")


def demo_tools(report_seconds: float = REPORT_SECONDS) -> list[BaseTool]:
    """Make the tools of the demo agent."""
    return [
        _titled(FunctionTool(get_weather), "Look up the weather"),
        _gated(search_database, "Search the customer database"),
        _gated(update_database, "Change the customer database"),
        _gated(process_payment, "Send money"),
        _titled(gated(transfer_money, approvers=approvers), "Transfer money"),
        _titled(DocumentArchive().tool(), "Archive documents"),
        _gated(order_supplies, "Order supplies"),
        _titled(FunctionTool(request_leave), "Request leave"),
        slow_report(report_seconds),
        _titled(FunctionTool(draw_chart), "Draw a chart"),
        _titled(FunctionTool(read_document), "Read a document"),
        _titled(
            client_tool(
                "get_location",
                "Ask the user's browser where the user is.",
                {
                    "type": "object",
                    "properties": {
                        "precise": {
                            "type": "boolean",
                            "description": "Whether the street is needed, not only the town.",
                        }
                    },
                },
            ),
            "Share your location",
        ),
    ]


def _gated(function: Callable[..., Any], title: str) -> FunctionTool:
    return _titled(FunctionTool(function, require_confirmation=True), title)


def _titled(tool: Tool, title: str) -> Tool:
    tool.custom_metadata = {**(tool.custom_metadata or {}), "title": title}
    return tool


def _record_effect(tool: str, **args: object) -> None:
    path = os.environ.get(EFFECTS_VARIABLE)
    if path:
        line = json.dumps({"tool": tool, "args": args}) + "\n"
        with open(path, "a", encoding="utf-8") as effects:
            effects.write(line)
            effects.flush()
            os.fsync(effects.fileno())
