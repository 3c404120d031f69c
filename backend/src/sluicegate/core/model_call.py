"""One call of a model: what was streamed of it, and what its aggregate adds.

Rule 1: what was streamed is never told again. Rule 2: nothing is final on the word of a fragment:
a call is made only by the aggregate, so a whole call in a fragment waits for it. Rule 3: where the
order of the aggregate is not the order that was told, `ModelCall.order` says which, for the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sluicegate.core.events import (
    Code,
    Content,
    Media,
    Shown,
    TextContent,
    WholeCall,
    attribute,
    contents_of_piece,
    is_shown,
    text,
)
from sluicegate.core.json_values import json_safe
from sluicegate.core.signals import CallAborted, CallCompleted, InputDelta, InputStarted, Item
from sluicegate.core.streamed_arguments import ArgumentsWriter, parse_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pydantic import JsonValue

Kind: TypeAlias = Literal["text", "thought", "call", "file", "code", "output"]


@dataclass(slots=True)
class Block:
    """A stretch of text or thought, or one thing of another kind with its name."""

    kind: Kind
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The whole text so far; empty for other kinds."""
        return "".join(self.pieces)

    @property
    def label(self) -> list[JsonValue]:
        """How the log notes a block: its kind, and its length or name."""
        is_text = self.kind in ("text", "thought")
        return [self.kind, len(self.text) if is_text else self.name]


@dataclass(slots=True)
class _Written:
    """A call whose arguments are being told."""

    name: str
    writer: ArgumentsWriter = field(default_factory=ArgumentsWriter)
    is_done: bool = False


class ModelCall:
    """What was told of one model call."""

    def __init__(self, files_url: str) -> None:
        self.told: list[Block] = []
        self.order: list[JsonValue] | None = None
        """After `complete`: the order that was told, if the aggregate has another."""
        self._files_url = files_url
        self._calls: dict[str, _Written] = {}
        self._writing: str | None = None

    def stream(self, parts: Sequence[Any]) -> list[Item]:
        """Take the parts of a fragment; return what is to be told now."""
        items: list[Item] = []
        for part in parts:
            words = getattr(part, "text", None)
            if words and type(words) is str:
                items.append(self.lengthen(words, thought=bool(getattr(part, "thought", None))))
                continue
            call = attribute(part, "function_call")
            if call is not None:
                items.extend(self._fragment(call))
                continue
            for shown in contents_of_piece(part, self._files_url):
                _append(self.told, shown)
                items.append(shown)
        return items

    def lengthen(self, words: str, *, thought: bool) -> TextContent:
        """Take more text; return what is to be told."""
        block = self.told[-1] if self.told else None
        kind: Kind = "thought" if thought else "text"
        if block is not None and block.kind == kind:
            block.pieces.append(words)
        else:
            self.told.append(Block(kind, pieces=[words]))
        return TextContent(thought, words)

    def complete(
        self, contents: Sequence[Content], cited: Sequence[Item] = (), order: object = None
    ) -> list[Item]:
        """Take the aggregate; return what was not told yet, its sources, then the calls as made.

        ``order`` is what the log noted when the call was live; it counts if nothing was streamed.
        """
        if not self.told and isinstance(order, list):
            contents = reordered(contents, order)
        follows = self._is_followed_by(contents)
        items: list[Item] = []
        for content in list(self._untold(contents, follows=follows)):
            items.extend(self._add(content))
        told = [block.label for block in self.told]
        if follows and told != [block.label for block in _blocks(contents)]:
            self.order = list(told)
        items.extend(cited)
        calls = [content for content in contents if isinstance(content, WholeCall)]
        items.extend(CallCompleted(call.id, call.name, call.args) for call in calls)
        return items + self.cut()

    def cut(self) -> list[Item]:
        """End the calls whose arguments were never completed."""
        items: list[Item] = []
        for made in self.unmade():
            written = self._calls[made.id]
            written.is_done = True
            items += [
                InputDelta(made.id, written.writer.finish(made.args)),
                made,
                CallAborted(made.id),
            ]
        return items

    def unmade(self) -> list[CallCompleted]:
        """The calls whose arguments are not complete, with those told so far."""
        return [
            CallCompleted(call_id, written.name, json_safe(written.writer.value))
            for call_id, written in self._calls.items()
            if not written.is_done
        ]

    def texts(self) -> list[tuple[Literal["text", "thought"], str]]:
        """The text told, in order."""
        return [
            ("text" if block.kind == "text" else "thought", block.text)
            for block in self.told
            if block.kind in ("text", "thought")
        ]

    def belongs(self, contents: Sequence[Content]) -> bool:
        """Whether a whole event under another id is the aggregate of what was told.

        ADK: a planner or a code executor makes the aggregate come under an id of its own, and
        agents of one's own may give each fragment its own.
        """
        if not self.told:
            return True
        told = "\n".join(said for _, said in self.texts())
        pieces = [content.text.strip() for content in contents if isinstance(content, TextContent)]
        if told and any(pieces):
            return "".join(pieces).startswith(told.strip()) or any(
                piece in told for piece in pieces if piece
            )
        names = {(block.kind, block.name) for block in self.told}
        return any(
            _name(content) in names for content in contents if not isinstance(content, TextContent)
        )

    def _fragment(self, call: object) -> Iterator[Item]:
        """A fragment of a call: whose it is, then the pieces of its arguments."""
        pieces, more = attribute(call, "partial_args"), attribute(call, "will_continue")
        if not pieces and more is None and (attribute(call, "args") or self._writing is None):
            return
        call_id = self._owner(call)
        if call_id is None:
            return
        if call_id not in self._calls:
            self._calls[call_id] = _Written(text(call, "name"))
            self.told.append(Block("call", call_id))
            yield InputStarted(call_id, text(call, "name"))
        for piece in pieces if isinstance(pieces, list | tuple) else ():
            added = _write(self._calls[call_id].writer, piece)
            if added:
                yield InputDelta(call_id, added)

    def _owner(self, call: object) -> str | None:
        """The id of the call that a fragment belongs to; None if it is not to be shown yet."""
        call_id = text(call, "id")
        if call_id not in self._calls:
            if text(call, "name"):
                self._writing = call_id if call_id and is_shown(call) else None
                return self._writing
            return self._writing
        self._writing = call_id
        return call_id

    def _add(self, content: Content) -> Iterator[Item]:
        """Tell what the aggregate adds."""
        if not isinstance(content, WholeCall):
            _append(self.told, content)
            yield content
            return
        written = self._calls.get(content.id)
        if written is None or written.is_done:
            written = self._calls[content.id] = _Written(content.name)
            self.told.append(Block("call", content.id))
            yield InputStarted(content.id, content.name)
        written.is_done = True
        yield InputDelta(content.id, written.writer.finish(content.args))

    def _is_followed_by(self, contents: Sequence[Content]) -> bool:
        """Whether an aggregate only adds to what was told; callbacks and planners rewrite."""
        whole = _texts(_blocks(contents))
        return all(whole[kind].startswith(told) for kind, told in _texts(self.told).items())

    def _untold(self, contents: Sequence[Content], *, follows: bool) -> Iterator[Content]:
        told = _texts(self.told)
        everything = "\n".join(told.values())
        others = [(block.kind, block.name) for block in self.told]
        for content in contents:
            if isinstance(content, TextContent):
                if follows:
                    kind = _name(content)[0]
                    rest = content.text[len(told[kind]) :]
                    told[kind] = told[kind][len(content.text) :]
                    if rest:
                        yield TextContent(content.thought, rest)
                elif content.text.strip() not in everything:
                    yield content
            elif isinstance(content, WholeCall) or _name(content) not in others:
                yield content
            else:
                others.remove(_name(content))


def reordered(contents: Sequence[Content], order: Sequence[object]) -> list[Content]:
    """Put the contents of an aggregate into the order in which they were told."""
    texts = _texts(_blocks(contents))
    others = [content for content in contents if not isinstance(content, TextContent)]
    found: list[Content] = []
    for label in order:
        kind, name = label if isinstance(label, list) and len(label) == 2 else (None, None)
        if kind in texts and isinstance(name, int):
            found.append(TextContent(kind == "thought", texts[kind][:name]))
            texts[kind] = texts[kind][name:]
        else:
            at = next((i for i, c in enumerate(others) if _name(c) == (kind, name)), None)
            if at is not None:
                found.append(others.pop(at))
    found.extend(others)
    found.extend(TextContent(kind == "thought", rest) for kind, rest in texts.items())
    return [content for content in found if not isinstance(content, TextContent) or content.text]


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


def _texts(blocks: Iterable[Block]) -> dict[Kind, str]:
    found: dict[Kind, list[str]] = {"thought": [], "text": []}
    for block in blocks:
        if block.kind in found:
            found[block.kind].extend(block.pieces)
    return {kind: "".join(pieces) for kind, pieces in found.items()}


def _name(content: Content | Shown) -> tuple[Kind, str]:
    if isinstance(content, TextContent):
        return ("thought" if content.thought else "text"), ""
    if isinstance(content, WholeCall):
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
