"""A conversation in a session, and models that continue it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from google.adk.artifacts.base_artifact_service import BaseArtifactService
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.genai import types

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.engine.current_guard import CURRENT_GUARD
from sluicegate.engine.guard.guard import ApprovalGuard
from sluicegate.engine.guard.user_notice_queue import Notices
from sluicegate.media.chat_files import ChatFiles
from sluicegate.media.file_cache import FileCache
from sluicegate.media.model_capability_table import CapabilityTable
from sluicegate.media.model_wrapper import ModelFiles
from sluicegate.media.replace_files_by_references import ResultFiles
from sluicegate.media.result_limits import ResultLimits
from tests.media.making import made

CHAT = ChatKey("app", "ann", "c1")
LIMITS = ResultLimits(files=10, file_bytes=20 * 2**20, text_bytes=100 * 1024)


@dataclass
class Server:
    """The stores, the cache and the request shaping of one process."""

    service: BaseArtifactService = field(default_factory=InMemoryArtifactService)
    cache: FileCache = field(default_factory=lambda: FileCache(2**26, 60))
    turns: int = 10
    untrusted: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.files = ChatFiles(self.service, ("*/*",), 20 * 2**20)
        self.models = ModelFiles(
            self.files,
            CapabilityTable.load(),
            self.cache,
            CURRENT_GUARD.get,
            turns=self.turns,
            untrusted=self.untrusted,
        )
        self.results = ResultFiles(self.files, CHAT, LIMITS)
        self.notices = Notices()

    @property
    def turn(self) -> ApprovalGuard:
        """The file chunks of a turn."""
        return cast("ApprovalGuard", SimpleNamespace(chat=CHAT, notices=self.notices))

    def restarted(self) -> Server:
        """Another process on the same store."""
        return Server(self.service, turns=self.turns, untrusted=self.untrusted)

    async def ask(self, model: BaseLlm, contents: list[types.Content]) -> str:
        """Continue with a model and return its text."""
        token = CURRENT_GUARD.set(self.turn)
        request = LlmRequest(model=model.model, contents=contents)
        words = ""
        try:
            async for response in self.models.wrap(model).generate_content_async(request):
                content = response.content or types.Content()
                words += "".join(part.text or "" for part in content.parts or [])
        finally:
            CURRENT_GUARD.reset(token)
        return words

    async def answered(self, steps: list[list[str]]) -> list[types.Content]:
        """A conversation in which the tool has made everything, step by step."""
        wish = " then ".join(" and ".join(step) for step in steps)
        contents = [said(f"make {wish}")]
        for number, step in enumerate(steps):
            calls = [
                types.FunctionCall(id=f"call_{number}_{index}", name="make", args={"kind": kind})
                for index, kind in enumerate(step)
            ]
            contents.append(
                types.Content(role="model", parts=[types.Part(function_call=c) for c in calls])
            )
            results = [made(kind) for kind in step]
            answers = [await self._answer(*one) for one in zip(calls, results, strict=True)]
            contents.append(types.Content(role="user", parts=answers))
        return contents

    async def _answer(self, call: types.FunctionCall, result: Any) -> types.Part:
        settled = await self.results.store_result(result)
        parts = [
            types.FunctionResponsePart(
                file_data=types.FunctionResponseFileData(
                    file_uri=file.uri, mime_type=file.media_type
                )
            )
            for file in settled.files
        ]
        answer = types.FunctionResponse(
            id=call.id, name=call.name, response=settled.response, parts=parts or None
        )
        return types.Part(function_response=answer)


def said(*parts: str | types.Part, role: str = "user") -> types.Content:
    """A message of texts and parts."""
    return types.Content(
        role=role,
        parts=[types.Part(text=part) if isinstance(part, str) else part for part in parts],
    )


def reloaded(contents: list[types.Content]) -> list[types.Content]:
    """The same, as a database gives it back."""
    return [types.Content.model_validate_json(content.model_dump_json()) for content in contents]
