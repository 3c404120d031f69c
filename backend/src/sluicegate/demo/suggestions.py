"""Suggestions of the demo page; each starts its own scenario of the script."""

from __future__ import annotations

from typing import Final

SUGGESTIONS: Final[tuple[str, ...]] = (
    "Hello! What can you do?",
    "Why is the sky blue?",
    "How is the weather in Tokyo?",
    "Search the database for users",
    "Pay Ada 50 euros",
    "Search and update the database at the same time",
    "Find the inactive users, then archive them",
    "Pay my five invoices one after the other",
    "Transfer 5000 euros to the landlord",
    "Archive the old documents",
    "Order paper for the office",
    "Request five days of leave",
    "How is the weather in Bern? And pay the guide",
    "Give Ada a refund",
    "How is the weather in Atlantis?",
    "Draw a chart of the sales",
    "Show me the handbook",
    "Where am I?",
    "Where am I, and can you book a taxi?",
    "Compile the energy report",
    "What is a sluice gate? Name your sources",
    "Compute the first five squares",
    "Tell me a long story",
    "Think about it for ever",
    "Show me how you fail",
)
