"""Local endpoints with the rules of the providers about tools and files, without a key."""

from sluicegate.testing.providers.anthropic import FakeAnthropic
from sluicegate.testing.providers.endpoint import Endpoint, Provider, listening
from sluicegate.testing.providers.gemini import FakeGemini
from sluicegate.testing.providers.messages import Message, Reply, Result
from sluicegate.testing.providers.openai import FakeOpenAI
from sluicegate.testing.providers.received_files import ReceivedFile
from sluicegate.testing.providers.refusal_exceptions import NotFound, Refused

__all__ = [
    "Endpoint",
    "FakeAnthropic",
    "FakeGemini",
    "FakeOpenAI",
    "Message",
    "NotFound",
    "Provider",
    "ReceivedFile",
    "Refused",
    "Reply",
    "Result",
    "listening",
]
