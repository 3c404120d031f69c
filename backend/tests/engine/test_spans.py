"""Secrets stay where they belong: no log, no span and no foreign chunk shows them."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.server.logging_config import logging_to_stderr
from sluicegate.server.settings import Settings
from tests.agents.conformance_agent import SECRET
from tests.engine.talk import Talk


@pytest.mark.parametrize("log_level", ["info", "debug"])
@pytest.mark.parametrize("story", ["tool_fails", "model_fails", "model_fails_later", "secrets"])
async def test_a_secret_is_in_no_log_and_no_span(
    engine: ChatEngine,
    spans: InMemorySpanExporter,
    capsys: pytest.CaptureFixture[str],
    story: str,
    log_level: str,
) -> None:
    with logging_to_stderr(Settings(log_level=log_level)):  # type: ignore[arg-type]  # parametrised
        talk = Talk(engine)
        turn = await talk.say(f"story:{story}")
        if turn.finish_reason == "tool-calls":
            await talk.approve()
    written = capsys.readouterr()
    if log_level == "info":
        # The log alone has the text of an exception.
        lines = (written.err + written.out).splitlines()
        assert [line for line in lines if SECRET in line and " ERROR " not in line] == []
        assert story != "secrets" or SECRET not in written.err
    exported = [span.to_json() for span in spans.get_finished_spans()]
    assert exported
    leaking = [span for span in exported if SECRET in span]
    assert not leaking, leaking[0]


@pytest.mark.parametrize("story", ["tool_fails", "model_fails", "model_fails_later"])
async def test_the_text_of_an_exception_is_in_no_chunk_and_no_session(
    engine: ChatEngine, story: str
) -> None:
    talk = Talk(engine)
    turn = await talk.say(f"story:{story}")
    if turn.finish_reason == "tool-calls":
        await talk.approve()
    assert SECRET not in str([turn.chunks for turn in talk.turns])
    assert SECRET not in str(await talk.engine.get_chat(talk.chat_id, user=talk.user))
