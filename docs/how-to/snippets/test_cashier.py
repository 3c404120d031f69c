from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool

from sluicegate.testing import calls, open_chat, says, scripted_model


async def test_a_payment_is_made_once_after_its_approval():
    paid = []

    def pay(amount: int) -> dict:
        """Pay an amount in euros."""
        paid.append(amount)
        return {"receipt": len(paid)}

    model = scripted_model([calls(("pay", {"amount": 5})), says("Paid.")])
    tools = [FunctionTool(pay, require_confirmation=True)]
    async with open_chat(LlmAgent(name="cashier", model=model, tools=tools)) as chat:
        await chat.say("Pay 5 euros.")
        [request] = chat.pending()
        assert request["input"] == {"amount": 5}
        assert paid == []

        await chat.approve()
        assert chat.text == "Paid."
        assert paid == [5]

        await chat.post_last()  # a second tab sends the same decision
        assert paid == [5]
        chat.check_rules()
