from __future__ import annotations

from google.adk.models.llm_response import LlmResponse
from google.genai import types

from tests.replay.single_responses import parts, played, scripted, words


async def test_deltas_are_partial_and_one_aggregate_repeats_them() -> None:
    model = scripted(
        {
            "parts": [{"thought": "Hmmm."}, {"text": "Hello "}, {"text": "there"}],
            "delta_chars": 4,
            "usage": {"prompt": 12, "output": 9, "reasoning": 2, "cached": 5},
        }
    )
    *partials, aggregate = await played(model)
    assert [response.partial for response in partials] == [True] * len(partials)
    assert words(partials) == ["(Hmmm)", "(.)", "Hell", "o ", "ther", "e"]
    assert aggregate.partial is False
    assert words([aggregate]) == ["(Hmmm.)", "Hello there"]
    assert aggregate.finish_reason is types.FinishReason.STOP
    assert aggregate.model_version == "scripted"
    usage = aggregate.usage_metadata
    assert usage is not None
    assert (usage.prompt_token_count, usage.candidates_token_count) == (12, 9)
    assert (usage.thoughts_token_count, usage.cached_content_token_count) == (2, 5)
    assert usage.total_token_count == 23


async def test_only_the_last_partial_has_finish_reason_and_usage() -> None:
    *partials, _ = await played(scripted({"parts": [{"text": "Hello there"}], "delta_chars": 4}))
    assert [bool(response.usage_metadata) for response in partials] == [False, False, True]
    assert [response.finish_reason for response in partials[:-1]] == [None, None]
    assert partials[-1].finish_reason is types.FinishReason.STOP


async def test_without_streaming_there_is_only_the_aggregate() -> None:
    model = scripted({"parts": [{"text": "Hello there"}, {"call": {"name": "pay", "id": "p"}}]})
    (only,) = await played(model, stream=False)
    assert only.model_dump() == (await played(model))[-1].model_dump()


async def test_a_call_has_one_id_in_partial_and_aggregate() -> None:
    model = scripted({"parts": [{"call": {"name": "pay", "args": {"amount": 5}}}]})
    first, second = (response.get_function_calls()[0] for response in await played(model))
    assert first.id == second.id
    assert first.id is not None
    assert first.id.startswith("adk-")
    assert first.args == second.args == {"amount": 5}


async def test_a_call_keeps_the_id_of_the_script() -> None:
    model = scripted({"parts": [{"call": {"name": "pay", "id": "call-1"}}]})
    calls = [response.get_function_calls()[0] for response in await played(model)]
    assert [call.id for call in calls] == ["call-1", "call-1"]


async def test_each_playback_of_a_call_without_id_is_another_call() -> None:
    model = scripted({"parts": [{"call": {"name": "pay"}}]})
    first = (await played(model))[-1].get_function_calls()[0]
    again = (await played(model))[-1].get_function_calls()[0]
    assert first.id != again.id


ARGS = {
    "city": "Tokyo",
    "odd key's": "\n",
    "a.b": "dotted",
    "days": 3,
    "share": 0.5,
    "fast": True,
    "note": None,
    "empty": "",
    "stops": [{"name": "Osaka"}, "Kyoto", [1]],
}


async def test_streamed_arguments_arrive_in_deltas_and_complete() -> None:
    call = {"name": "travel", "args": ARGS, "stream": True}
    model = scripted({"parts": [{"call": call}], "delta_chars": 3})
    *partials, aggregate = await played(model)
    pieces = [response.get_function_calls()[0] for response in partials]
    assert (pieces[0].name, pieces[0].args, pieces[0].will_continue) == ("travel", None, True)
    assert {piece.name for piece in pieces[1:]} == {None}
    assert [piece.will_continue for piece in pieces] == [True] * (len(pieces) - 1) + [False]
    city = [
        (argument.string_value, argument.will_continue)
        for piece in pieces
        for argument in piece.partial_args or []
        if argument.json_path == "$.city"
    ]
    assert city == [("Tok", True), ("yo", False)]
    (whole,) = aggregate.get_function_calls()
    assert whole.args == ARGS
    assert whole.args["fast"] is True
    assert {piece.id for piece in pieces} == {whole.id}


async def test_a_streamed_call_without_arguments_is_complete_at_once() -> None:
    model = scripted({"parts": [{"call": {"name": "now", "stream": True}}]})
    (call,) = (await played(model))[-1].get_function_calls()
    assert (call.name, call.args) == ("now", {})


async def test_two_streamed_calls_are_separate() -> None:
    calls = [
        {"call": {"name": "pay", "args": {"to": name}, "stream": True}} for name in ("Ann", "Bob")
    ]
    aggregate = (await played(scripted({"parts": calls})))[-1]
    assert [call.args for call in aggregate.get_function_calls()] == [{"to": "Ann"}, {"to": "Bob"}]


async def test_images_and_code_are_complete_and_in_order() -> None:
    model = scripted(
        {
            "parts": [
                {"text": "Look: "},
                {"image": {"media_type": "image/png", "base64": "UE5H"}},
                {"code": {"language": "python", "code": "print(1)", "result": "1\n"}},
                {"text": "One."},
            ]
        }
    )
    *partials, aggregate = await played(model)
    for order in (parts(aggregate), [part for partial in partials for part in parts(partial)]):
        look, image, code, outcome, one = order
        assert (look.text, one.text) == ("Look: ", "One.")
        assert image.inline_data is not None
        assert (image.inline_data.data, image.inline_data.mime_type) == (b"PNG", "image/png")
        assert code.executable_code is not None
        assert code.executable_code.code == "print(1)"
        assert code.executable_code.language is types.Language.PYTHON
        assert outcome.code_execution_result is not None
        assert outcome.code_execution_result.output == "1\n"


def sources(response: LlmResponse) -> list[tuple[str, str | None, str | None]]:
    grounding = response.grounding_metadata
    found: list[tuple[str, str | None, str | None]] = []
    for chunk in (grounding.grounding_chunks if grounding else None) or []:
        if chunk.web:
            found.append(("web", chunk.web.uri, chunk.web.title))
        if chunk.retrieved_context:
            found.append(("document", chunk.retrieved_context.uri, chunk.retrieved_context.title))
    return found


async def test_sources_are_in_a_delta_and_in_the_aggregate() -> None:
    page = {"source": {"uri": "https://a.example", "title": "A"}}
    paper = {"source": {"uri": "gs://papers/b.pdf", "title": "B"}}
    words_and_sources = [{"text": "One."}, page, {"text": "Two."}, paper, {"text": "Three."}]
    one, two, three, aggregate = await played(scripted({"parts": words_and_sources}))
    first = ("web", "https://a.example", "A")
    second = ("document", "gs://papers/b.pdf", "B")
    assert (sources(one), sources(three)) == ([first], [])
    assert sources(two) == sources(aggregate) == [first, second]


async def test_sources_at_the_end_are_in_the_last_delta() -> None:
    pages = [{"source": {"uri": f"https://{name}.example"}} for name in "ab"]
    model = scripted({"parts": [{"text": "One."}, pages[0], {"text": "Two."}, pages[1]]})
    one, two, aggregate = await played(model)
    assert len(sources(one)) == 1
    assert sources(two) == sources(aggregate)
    assert [uri for _, uri, _ in sources(two)] == ["https://a.example", "https://b.example"]


async def test_sources_without_text_are_sent() -> None:
    responses = await played(scripted({"parts": [{"source": {"uri": "https://a.example"}}]}))
    assert [sources(response) for response in responses] == [
        [("web", "https://a.example", None)]
    ] * 2


async def test_an_empty_response_is_an_aggregate_without_content() -> None:
    responses = await played(scripted({"parts": []}))
    assert [(response.partial, response.content) for response in responses] == [
        (True, None),
        (False, None),
    ]


async def test_parts_of_live_conversations_are_ignored() -> None:
    spoken = [
        {"heard": "hello"},
        {"audio": {"tone_hz": 440, "seconds": 1}},
        {"transcript": {"role": "model", "text": "hi"}},
        {"text": "Hi."},
    ]
    assert words(await played(scripted({"parts": spoken}))) == ["Hi.", "Hi."]


async def test_a_truncated_answer_keeps_its_text_and_the_reason() -> None:
    aggregate = (await played(scripted({"parts": [{"text": "Once"}], "finish": "max_tokens"})))[-1]
    assert words([aggregate]) == ["Once"]
    assert aggregate.finish_reason is types.FinishReason.MAX_TOKENS
    assert aggregate.error_code == "MAX_TOKENS"


async def test_an_interrupted_answer_is_marked() -> None:
    aggregate = (await played(scripted({"parts": [{"text": "Once"}], "interrupted": True})))[-1]
    assert aggregate.interrupted is True
