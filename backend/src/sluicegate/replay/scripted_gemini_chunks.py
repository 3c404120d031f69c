"""The chunks in which a provider sends a scripted response."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from google.genai import types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from sluicegate.replay.scenario import (
        ScriptedCall,
        ScriptedCode,
        ScriptedPart,
        ScriptedResponse,
        ScriptedSource,
        ScriptedUsage,
    )

_PLAIN_KEY: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_KEY_ESCAPES: Final = {
    "\\": "\\\\",
    "'": "\\'",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\b": "\\b",
    "\f": "\\f",
}


def provider_chunks(
    response: ScriptedResponse, model_version: str
) -> Iterator[types.GenerateContentResponse]:
    """Yield the chunks of a response, each created when it is requested.

    The last one has the finish reason and the usage, unless the response ends in an error or hangs.
    """
    sent_sources = 0
    sources: list[types.GroundingChunk] = []
    pending: list[types.Part] | None = None
    for scripted in response.parts:
        if scripted.source is not None:
            sources.append(grounding_chunk(scripted.source))
            continue
        for parts in part_deltas(scripted, response.delta_chars):
            if pending is not None:
                yield _chunk(pending, sources[sent_sources:] and sources, model_version)
                sent_sources = len(sources)
            pending = parts
    new_sources = sources[sent_sources:] and sources
    if response.error is None and not response.hang:
        last = _chunk(pending, new_sources, model_version)
        if last.candidates:
            last.candidates[0].finish_reason = response.finish
        last.usage_metadata = _usage(response.usage)
        yield last
    elif pending is not None:
        yield _chunk(pending, new_sources, model_version)


def _chunk(
    parts: list[types.Part] | None, sources: list[types.GroundingChunk], model_version: str
) -> types.GenerateContentResponse:
    # ADK: the aggregate keeps only the last grounding, so each one repeats the earlier ones.
    grounding = types.GroundingMetadata(grounding_chunks=list(sources)) if sources else None
    content = types.Content(role="model", parts=parts) if parts else None
    candidate = types.Candidate(content=content, grounding_metadata=grounding)
    return types.GenerateContentResponse(candidates=[candidate], model_version=model_version)


def part_deltas(scripted: ScriptedPart, size: int) -> Iterator[list[types.Part]]:
    """Yield the deltas of one part, with text in deltas of ``size`` characters.

    Sources, and the kinds of live conversations, yield nothing.
    """
    if scripted.text is not None:
        for text in split_text(scripted.text, size):
            yield [types.Part(text=text)]
    elif scripted.thought is not None:
        for text in split_text(scripted.thought, size):
            yield [types.Part(text=text, thought=True)]
    elif scripted.call is not None:
        for call in _calls(scripted.call, size):
            yield [types.Part(function_call=call)]
    elif scripted.image is not None:
        blob = types.Blob(data=scripted.image.data, mime_type=scripted.image.media_type)
        yield [types.Part(inline_data=blob)]
    elif scripted.code is not None:
        yield from _code(scripted.code)


def split_text(text: str, size: int) -> Iterator[str]:
    """Yield the text in deltas of ``size`` characters, nothing for an empty text."""
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _calls(call: ScriptedCall, size: int) -> Iterator[types.FunctionCall]:
    if not call.stream:
        yield types.FunctionCall(id=call.id, name=call.name, args=dict(call.args))
        return
    yield types.FunctionCall(id=call.id, name=call.name, will_continue=True)
    for argument in _arguments("$", call.args, size):
        yield types.FunctionCall(partial_args=[argument], will_continue=True)
    yield types.FunctionCall(will_continue=False)


def _arguments(path: str, value: JsonValue, size: int) -> Iterator[types.PartialArg]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _arguments(path + _step(key), item, size)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _arguments(f"{path}[{index}]", item, size)
    elif isinstance(value, str):
        deltas = list(split_text(value, size)) or [""]
        for number, delta in enumerate(deltas, start=1):
            more = number < len(deltas)
            yield types.PartialArg(json_path=path, string_value=delta, will_continue=more)
    elif isinstance(value, bool):
        yield types.PartialArg(json_path=path, bool_value=value, will_continue=False)
    elif value is None:
        yield types.PartialArg(json_path=path, null_value="NULL_VALUE", will_continue=False)
    else:
        yield types.PartialArg(json_path=path, number_value=value, will_continue=False)


def _step(key: str) -> str:
    if _PLAIN_KEY.fullmatch(key):
        return f".{key}"
    quoted = "".join(_KEY_ESCAPES.get(character, character) for character in key)
    return f"['{quoted}']"


def _code(code: ScriptedCode) -> Iterator[list[types.Part]]:
    language = types.Language.PYTHON
    yield [types.Part(executable_code=types.ExecutableCode(code=code.code, language=language))]
    outcome = types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output=code.result)
    yield [types.Part(code_execution_result=outcome)]


def grounding_chunk(source: ScriptedSource) -> types.GroundingChunk:
    """Return a source as the provider sends it."""
    if source.uri.startswith(("http://", "https://")):
        web = types.GroundingChunkWeb(uri=source.uri, title=source.title)
        return types.GroundingChunk(web=web)
    document = types.GroundingChunkRetrievedContext(uri=source.uri, title=source.title)
    return types.GroundingChunk(retrieved_context=document)


def _usage(usage: ScriptedUsage) -> types.GenerateContentResponseUsageMetadata:
    return types.GenerateContentResponseUsageMetadata(
        prompt_token_count=usage.prompt,
        candidates_token_count=usage.output,
        thoughts_token_count=usage.reasoning,
        cached_content_token_count=usage.cached,
        total_token_count=usage.prompt + usage.output + (usage.reasoning or 0),
    )
