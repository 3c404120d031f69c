from __future__ import annotations

from typing import Any

from sluicegate.replay.normalized import DEADLINE, MOMENT, Names, normalized
from sluicegate.replay.recording import Entry, Header, Recording

ONE = "3b59efb4-6b67-4a4b-8fbc-0a46648e4c2d"
TWO = "acd2432c-d438-42f4-989a-82827ceba670"


def entry(seq: int, kind: Any, body: dict[str, Any], turn: int = 1) -> Entry:
    return Entry(seq=seq, turn=turn, dir="client", kind=kind, delta_ms=seq, body=body)


def recording(*entries: Entry) -> Recording:
    return Recording(Header(created="2026-05-06T07:08:09Z", app="demo", chat="plain"), entries)


SEND = {"type": "send", "id": "plain", "message": {"id": "hi", "role": "user"}}


def test_generated_ids_are_named_in_order_of_appearance() -> None:
    body = {
        "toolCallId": f"adk-{TWO}",
        "approvalId": f"adk-{ONE}",
        "interrupt": f"wf_tool_confirmation:adk-{TWO}",
        "invocation": f"e-{ONE}",
        "id": ONE,
        "messageId": "msg-31a253390138c7db8a4d83e3",
        f"adk-{ONE}": "turn-dc12c0d7f6099ac8",
        "errorText": "It failed (error 0badcafe).",
    }
    assert Names(recording()).of(body) == {
        "toolCallId": "adk-1",
        "approvalId": "adk-2",
        "interrupt": "wf_tool_confirmation:adk-1",
        "invocation": "e-1",
        "id": "id-1",
        "messageId": "msg-1",
        "adk-2": "turn-1",
        "errorText": "It failed (error 1).",
    }


def test_ids_of_the_client_are_renamed_only_where_they_are_ids() -> None:
    names = Names(recording(entry(1, "request", SEND)))
    body = {"id": "plain", "messageId": "hi", "text": "hi, a plain text", "plain": "hi"}
    assert names.of(body) == {**body, "id": "chat", "messageId": "user-1"}
    assert names.of({"url": "/api/chats/plain/files/a"}) == {"url": "/api/chats/chat/files/a"}


def test_timestamps_and_deadlines_are_constant() -> None:
    body = {"timestamp": 5.5, "deadline": 6.5, "createdAt": "2026-05-06T07:08:09.123Z", "size": 5.5}
    assert Names(recording()).of(body) == {
        "timestamp": MOMENT,
        "deadline": DEADLINE,
        "createdAt": "2026-01-01T00:00:00.000+00:00",
        "size": 5.5,
    }
    assert Names(recording()).of({"expiresAt": "2026-05-06T07:08:09Z"}) == {
        "expiresAt": "2026-01-02T00:00:00.000+00:00"
    }


def test_the_order_within_a_turn_does_not_depend_on_the_reader() -> None:
    event, chunk = {"id": ONE}, {"type": "start-step"}
    one = recording(entry(1, "request", SEND), entry(2, "chunk", chunk), entry(3, "event", event))
    other = recording(entry(1, "request", SEND), entry(2, "event", event), entry(3, "chunk", chunk))
    assert normalized(one).text() == normalized(other).text()
    assert [each.kind for each in normalized(one).entries] == ["request", "event", "chunk"]
    assert {each.delta_ms for each in normalized(one).entries} == {0}


def test_names_can_be_resolved_to_ids() -> None:
    kept = recording(entry(1, "request", SEND), entry(2, "event", {"id": f"adk-{ONE}"}))
    names = Names(kept)
    normalized(kept, names)
    body = {"approvalId": "adk-1", "messageId": "user-1", "id": "chat", "text": "adk-1 said"}
    assert names.resolve([body]) == [
        {"approvalId": f"adk-{ONE}", "messageId": "hi", "id": "plain", "text": "adk-1 said"}
    ]
