"""One call of a model: what was streamed of it, and what its aggregate adds.

Rule 1: streamed content is never emitted again. Rule 2: nothing is final before the aggregate, so
a complete call in a partial event waits for it. Rule 3: where the order of the aggregate differs
from the order that was emitted, `ModelCall.emitted_order` holds that order for the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sluicegate.core.event_reading import attribute, is_shown, streamed_contents_of, text
from sluicegate.core.json_values import json_safe
from sluicegate.core.signals import (
    NOT_FINISHED,
    Call,
    Code,
    Content,
    InputAvailable,
    InputDelta,
    InputStarted,
    Media,
    Settled,
    TextContent,
)
from sluicegate.core.streamed_arguments import ArgumentsWriter, parse_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pydantic import JsonValue

    from sluicegate.core.signals import ReadSignal

BlockKind: TypeAlias = Literal["text", "thought", "call", "file", "code", "output"]


@dataclass(slots=True)
class Block:
    """A run of text or thought, or one content of another kind with its name."""

    kind: BlockKind
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text so far; empty for other kinds."""
        return "".join(self.pieces)

    @property
    def label(self) -> list[JsonValue]:
        """The block in the log's note: its kind, and its length or name."""
        is_text = self.kind in ("text", "thought")
        return [self.kind, len(self.text) if is_text else self.name]


@dataclass(slots=True)
class _StreamedCall:
    """A call whose arguments stream."""

    name: str
    writer: ArgumentsWriter = field(default_factory=ArgumentsWriter)
    is_complete: bool = False


class ModelCall:
    """The content of one model call that has been emitted."""

    def __init__(self, files_url: str) -> None:
        self.blocks: list[Block] = []
        self.emitted_order: list[JsonValue] | None = None
        """After `complete`: the labels in the order emitted, if the aggregate has another order."""
        self._files_url = files_url
        self._calls: dict[str, _StreamedCall] = {}
        self._current_call: str | None = None
        """The id of the call that the last fragment of a call belonged to."""

    def stream(self, parts: Sequence[Any]) -> list[ReadSignal]:
        """Process the parts of a partial event; return the signals to emit."""
        signals: list[ReadSignal] = []
        for part in parts:
            piece = getattr(part, "text", None)
            if piece and type(piece) is str:
                signals.append(
                    self.append_text(piece, thought=bool(getattr(part, "thought", None)))
                )
                continue
            call = attribute(part, "function_call")
            if call is not None:
                signals.extend(self._stream_call(call))
                continue
            for content in streamed_contents_of(part, self._files_url):
                _append(self.blocks, content)
                signals.append(content)
        return signals

    def append_text(self, piece: str, *, thought: bool) -> TextContent:
        """Append text; return the signal to emit."""
        block = self.blocks[-1] if self.blocks else None
        kind: BlockKind = "thought" if thought else "text"
        if block is not None and block.kind == kind:
            block.pieces.append(piece)
        else:
            self.blocks.append(Block(kind, pieces=[piece]))
        return TextContent(thought, piece)

    def complete(
        self, contents: Sequence[Content], sources: Sequence[ReadSignal] = (), order: object = None
    ) -> list[ReadSignal]:
        """Process the aggregate; return unstreamed signals, its sources, then its complete calls.

        ``order`` is the log's note of the emitted order; it counts if nothing was streamed.
        """
        if not self.blocks and isinstance(order, list):
            contents = reordered(contents, order)
        extends = self._is_extended_by(contents)
        signals: list[ReadSignal] = []
        for content in list(self._not_streamed(contents, extends=extends)):
            signals.extend(self._add(content))
        labels = [block.label for block in self.blocks]
        if extends and labels != [block.label for block in _blocks(contents)]:
            self.emitted_order = list(labels)
        signals.extend(sources)
        signals.extend(InputAvailable(content) for content in contents if isinstance(content, Call))
        return signals + self.abort_calls()

    def abort_calls(self) -> list[ReadSignal]:
        """End the calls whose arguments were never completed."""
        signals: list[ReadSignal] = []
        for call in self.incomplete_calls():
            streamed = self._calls[call.id]
            streamed.is_complete = True
            signals += [
                InputDelta(call.id, streamed.writer.finish(call.args)),
                InputAvailable(call),
                Settled(call.id, NOT_FINISHED),
            ]
        return signals

    def incomplete_calls(self) -> list[Call]:
        """The calls whose arguments are not complete, with the arguments streamed so far."""
        return [
            Call(call_id, streamed.name, json_safe(streamed.writer.value))
            for call_id, streamed in self._calls.items()
            if not streamed.is_complete
        ]

    def texts(self) -> list[tuple[Literal["text", "thought"], str]]:
        """The texts emitted, in order."""
        return [
            ("text" if block.kind == "text" else "thought", block.text)
            for block in self.blocks
            if block.kind in ("text", "thought")
        ]

    def is_aggregated_by(self, contents: Sequence[Content]) -> bool:
        """Whether a complete event under another id is the aggregate of what was streamed.

        ADK: a planner or a code executor makes the aggregate come under an id of its own, and
        custom agents may give each partial event its own.
        """
        if not self.blocks:
            return True
        streamed = "\n".join(said for _, said in self.texts())
        pieces = [content.text.strip() for content in contents if isinstance(content, TextContent)]
        if streamed and any(pieces):
            return "".join(pieces).startswith(streamed.strip()) or any(
                piece in streamed for piece in pieces if piece
            )
        names = {(block.kind, block.name) for block in self.blocks}
        return any(
            _name(content) in names for content in contents if not isinstance(content, TextContent)
        )

    def _stream_call(self, call: object) -> Iterator[ReadSignal]:
        """Process a fragment of a call: find its call, then write the pieces of its arguments."""
        pieces, more = attribute(call, "partial_args"), attribute(call, "will_continue")
        is_whole = attribute(call, "args") or self._current_call is None
        if not pieces and more is None and is_whole:
            return
        call_id = self._call_of(call)
        if call_id is None:
            return
        if call_id not in self._calls:
            self._calls[call_id] = _StreamedCall(text(call, "name"))
            self.blocks.append(Block("call", call_id))
            yield InputStarted(Call(call_id, text(call, "name"), None))
        for piece in pieces if isinstance(pieces, list | tuple) else ():
            delta = _write(self._calls[call_id].writer, piece)
            if delta:
                yield InputDelta(call_id, delta)

    def _call_of(self, call: object) -> str | None:
        """The id of the call that a fragment belongs to; None if it is not shown yet."""
        call_id = text(call, "id")
        if call_id in self._calls:
            self._current_call = call_id
        elif text(call, "name"):
            self._current_call = call_id if call_id and is_shown(call) else None
        return self._current_call

    def _add(self, content: Content) -> Iterator[ReadSignal]:
        """Emit content that only the aggregate holds."""
        if not isinstance(content, Call):
            _append(self.blocks, content)
            yield content
            return
        streamed = self._calls.get(content.id)
        if streamed is None or streamed.is_complete:
            streamed = self._calls[content.id] = _StreamedCall(content.name)
            self.blocks.append(Block("call", content.id))
            yield InputStarted(Call(content.id, content.name, None))
        streamed.is_complete = True
        yield InputDelta(content.id, streamed.writer.finish(content.args))

    def _is_extended_by(self, contents: Sequence[Content]) -> bool:
        """Whether an aggregate only extends the streamed texts; callbacks and planners rewrite."""
        whole = _texts(_blocks(contents))
        return all(whole[kind].startswith(said) for kind, said in _texts(self.blocks).items())

    def _not_streamed(self, contents: Sequence[Content], *, extends: bool) -> Iterator[Content]:
        streamed = _texts(self.blocks)
        everything = "\n".join(streamed.values())
        others = [(block.kind, block.name) for block in self.blocks]
        for content in contents:
            if isinstance(content, TextContent):
                if extends:
                    kind = _name(content)[0]
                    rest = content.text[len(streamed[kind]) :]
                    streamed[kind] = streamed[kind][len(content.text) :]
                    if rest:
                        yield TextContent(content.thought, rest)
                elif content.text.strip() not in everything:
                    yield content
            elif isinstance(content, Call) or _name(content) not in others:
                yield content
            else:
                others.remove(_name(content))


def reordered(contents: Sequence[Content], order: Sequence[object]) -> list[Content]:
    """Put the contents of an aggregate into the order in which they were emitted."""
    texts = _texts(_blocks(contents))
    others = [content for content in contents if not isinstance(content, TextContent)]
    ordered: list[Content] = []
    for label in order:
        kind, name = label if isinstance(label, list) and len(label) == 2 else (None, None)
        if kind in texts and isinstance(name, int):
            ordered.append(TextContent(kind == "thought", texts[kind][:name]))
            texts[kind] = texts[kind][name:]
        else:
            at = next((i for i, c in enumerate(others) if _name(c) == (kind, name)), None)
            if at is not None:
                ordered.append(others.pop(at))
    ordered.extend(others)
    ordered.extend(TextContent(kind == "thought", rest) for kind, rest in texts.items())
    return [content for content in ordered if not isinstance(content, TextContent) or content.text]


def _blocks(contents: Iterable[Content]) -> list[Block]:
    blocks: list[Block] = []
    for content in contents:
        _append(blocks, content)
    return blocks


def _append(blocks: list[Block], content: Content) -> None:
    kind, name = _name(content)
    if not isinstance(content, TextContent):
        blocks.append(Block(kind, name))
    elif blocks and blocks[-1].kind == kind:
        blocks[-1].pieces.append(content.text)
    else:
        blocks.append(Block(kind, pieces=[content.text]))


def _texts(blocks: Iterable[Block]) -> dict[BlockKind, str]:
    """All thoughts and all text, each as one string."""
    pieces: dict[BlockKind, list[str]] = {"thought": [], "text": []}
    for block in blocks:
        if block.kind in pieces:
            pieces[block.kind].extend(block.pieces)
    return {kind: "".join(each) for kind, each in pieces.items()}


def _name(content: Content) -> tuple[BlockKind, str]:
    if isinstance(content, TextContent):
        return ("thought" if content.thought else "text"), ""
    if isinstance(content, Call):
        return "call", content.id
    if isinstance(content, Media):
        return "file", content.url
    return ("code" if isinstance(content, Code) else "output"), ""


def _write(writer: ArgumentsWriter, piece: object) -> str:
    path = parse_path(text(piece, "json_path"))
    string = attribute(piece, "string_value")
    if isinstance(string, str):
        return writer.add_string(path, string)
    for name in ("number_value", "bool_value"):
        value = attribute(piece, name)
        if value is not None:
            return writer.add_scalar(path, json_safe(value))
    return "" if attribute(piece, "null_value") is None else writer.add_scalar(path, None)
