"""The agent of a reader, whose model answers by itself."""

import asyncio

from google.adk.agents import LlmAgent

from sluicegate import ScriptedModel
from sluicegate.tools import gated


async def pay(recipient: str, amount: int) -> dict[str, object]:
    """Pay somebody; "nobody" is never reached."""
    if recipient == "nobody":
        await asyncio.Event().wait()
    return {"recipient": recipient, "paid": amount}


def scenario(recipient: str) -> dict[str, object]:
    """What the model says when it is to pay a recipient."""
    call = {"call": {"name": "pay", "args": {"recipient": recipient, "amount": 5}}}
    return {
        "match": f"Pay {recipient}",
        "responses": [{"parts": [call]}, {"parts": [{"text": "Done."}]}],
    }


root_agent = LlmAgent(
    name="cashier",
    model=ScriptedModel.from_data({"scenarios": [scenario("Ada"), scenario("nobody")]}),
    tools=[gated(pay, approvers=["ann", "bob"])],
)
