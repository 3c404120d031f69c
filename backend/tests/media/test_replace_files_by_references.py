"""Results on their way into the session: small, whole, and never a reason to fail."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.events.event import Event
from google.genai import types

from sluicegate import ToolResult
from sluicegate.core.event_reading import media_in
from sluicegate.media import Attachment
from sluicegate.media.attachments_and_links import Link
from sluicegate.media.extract_result_files import is_native
from sluicegate.media.result_limits import ResultLimits
from sluicegate.media.storable_results import FILES_KEY, from_outcome
from sluicegate.wire.stored_files import StoredFile, parse_file_uri
from tests.media import samples
from tests.media.history import CHAT, Server

PICTURE = types.Part(inline_data=types.Blob(data=samples.PNG, mime_type="image/png"))


def limited(**more: Any) -> Server:
    server = Server()
    limits = ResultLimits(
        **{"files": 3, "file_bytes": 1_000, "text_bytes": 2_000, "folders": (), **more}
    )
    server.results = type(server.results)(server.files, CHAT, limits)
    return server


async def test_a_result_keeps_references_and_no_bytes() -> None:
    server = Server()
    settled = await server.results.store_result({"title": "t", "chart": PICTURE})
    [file] = settled.files
    assert settled.response == {"title": "t"}
    assert isinstance(file, StoredFile)
    assert len(json.dumps(settled.outcome)) < 400
    assert await server.files.read(CHAT, file.name) == (samples.PNG, "image/png")


@pytest.mark.parametrize("result", [None, "text", 7, {"a": 1}, [1, 2], {}])
async def test_a_result_without_files_is_not_changed(result: object) -> None:
    settled = await Server().results.store_result(result)
    assert not settled.is_changed
    assert settled.for_adk == (result if isinstance(result, dict) else {"result": result})


@pytest.mark.parametrize(
    "result",
    [
        {"a": 1},
        {"a": 1, "chart": PICTURE},
        ToolResult(["words", PICTURE, types.FileData(file_uri="gs://a/b", mime_type="a/b")]),
    ],
)
async def test_a_result_in_the_ledger_is_restored_unchanged(result: object) -> None:
    settled = await Server().results.store_result(result)
    again = from_outcome(json.loads(json.dumps(settled.outcome)))
    assert again == settled.for_adk
    assert (FILES_KEY in again) == bool(settled.files)


PROBLEMS: list[tuple[str, Any, str]] = [
    ("too large", Attachment(data=bytes(1_001), media_type="audio/pcm"), "it is larger than 1,000"),
    (
        "a lie",
        types.Blob(data=samples.JPEG, mime_type="image/png"),
        "it is declared as image/png, but its content is something else",
    ),
    ("a missing path", Attachment(path=Path("/nowhere/a.png")), "it cannot be read"),
    ("a foreign path", Attachment(path=Path("/etc/hostname")), "it lies in a folder that this"),
    (
        "an address of this machine",
        Link("file:///etc/passwd", "text/plain"),
        "its address is none that a model reads",
    ),
    (
        "an address inside",
        Link("http://169.254.169.254/latest", "text/plain"),
        "its address is none that a model reads",
    ),
    (
        "a file of nobody",
        StoredFile.of(b"x", "text/plain", title="x.txt"),
        "this chat has no such file",
    ),
    (
        "a reference of somebody else",
        types.FileData(file_uri=StoredFile.of(b"x", "a/b").uri, mime_type="a/b"),
        "this chat has no such file",
    ),
]


@pytest.mark.parametrize(
    ("file", "reason"), [row[1:] for row in PROBLEMS], ids=[row[0] for row in PROBLEMS]
)
async def test_a_file_that_cannot_be_stored_is_one_sentence_in_the_result(
    file: Any, reason: str
) -> None:
    settled = await limited().results.store_result(ToolResult(["words", file, PICTURE]))
    assert settled.response["text_result"] == "words"
    assert len(settled.files) == 1
    note = settled.response["note"]
    assert reason in note
    assert "left out" in note
    assert note.endswith(".")
    assert "/etc" not in note


@pytest.mark.parametrize(("size", "kept"), [(999, 1), (1_000, 1), (1_001, 0)])
async def test_the_size_of_a_file_is_limited(size: int, kept: int) -> None:
    file = Attachment(data=bytes(size), media_type="audio/pcm")
    assert len((await limited().results.store_result(file)).files) == kept


@pytest.mark.parametrize("count", [2, 3, 4])
async def test_the_number_of_files_of_a_result_is_limited(count: int) -> None:
    files = [Attachment(data=bytes([n]), media_type="audio/pcm") for n in range(count)]
    settled = await limited().results.store_result(files)
    assert len(settled.files) == min(count, 3)
    assert ("note" in settled.response) == (count > 3)


async def test_paths_are_read_from_the_configured_folders(tmp_path: Path) -> None:
    shared, secret = tmp_path / "shared", tmp_path / "secret"
    shared.mkdir()
    secret.mkdir()
    (shared / "a.png").write_bytes(samples.PNG)
    (secret / "b.png").write_bytes(samples.PNG)
    (shared / "link.png").symlink_to(secret / "b.png")
    (shared / "folder").mkdir()
    results = limited(folders=(shared,)).results
    for path, count in (
        (shared / "a.png", 1),
        (shared / "folder" / ".." / "a.png", 1),
        (shared / "link.png", 0),
        (shared / ".." / "secret" / "b.png", 0),
        (shared / "folder", 0),
        (Path("shared/a.png\0"), 0),
    ):
        assert len((await results.store_result(path)).files) == count, path


@pytest.mark.parametrize("failing", ["save_artifact", "get_artifact_version"])
async def test_a_failing_store_is_reported_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    async def fails(_: object, **__: Any) -> int:
        raise OSError("disk-is-full")

    monkeypatch.setattr(InMemoryArtifactService, failing, fails)
    settled = await Server().results.store_result(ToolResult(["words", PICTURE]))
    assert settled.response["note"] == "A file was left out: it could not be stored."
    assert settled.files == []
    long = await limited().results.store_result("x" * 3_000)
    assert long.response["preview"] == "x" * 2_000
    assert long.response["note"].endswith("it was cut.")


LONG: list[tuple[Any, str, str]] = [
    ("x" * 3_000, "text/plain", "x" * 2_000),
    ({"rows": ["x" * 100] * 30}, "application/json", '{"rows": ["xxx'),
    (ToolResult(["y" * 3_000]), "application/json", '{"status": "success", "text_result": "yyy'),
    ("é" * 1_001, "text/plain", "é" * 1_001),
]


@pytest.mark.parametrize(("result", "media_type", "preview"), LONG)
async def test_a_long_result_becomes_a_file_with_a_preview(
    result: Any, media_type: str, preview: str
) -> None:
    server = limited(file_bytes=10_000)
    settled = await server.results.store_result(result)
    [file] = settled.files
    assert file.media_type == media_type
    assert settled.response["preview"].startswith(preview)
    assert len(settled.response["preview"]) <= 2_000
    assert "the whole is attached as result." in settled.response["note"]
    assert isinstance(file, StoredFile)
    whole, _ = await server.files.read(CHAT, file.name)
    assert len(whole) > 2_000
    if isinstance(result, ToolResult):
        assert settled.response["status"] == "success"


@pytest.mark.parametrize("over", [0, 1])
async def test_a_result_may_be_as_long_as_the_limit(over: int) -> None:
    text = "x" * (2_000 - len('{"result": ""}') + over)
    settled = await limited().results.store_result(text)
    assert ("preview" in settled.response) == bool(over)


NATIVE = [PICTURE, [PICTURE], {"a": PICTURE}, {"a": 1, "b": [PICTURE]}, [1, {"a": PICTURE}]]
NOT_NATIVE = [
    {"a": 1},
    "x",
    None,
    types.Part(text="x"),
    ToolResult([PICTURE]),
    PICTURE.inline_data,
    {"a": PICTURE, "b": b"x"},
    {"a": {"b": {"c": PICTURE}}},
    [PICTURE, types.Part(text="x")],
    {"a": PICTURE, "b": float("nan")},
]


@pytest.mark.parametrize("result", NATIVE)
def test_results_extracted_by_adk_are_not_extracted_again(result: object) -> None:
    assert is_native(result)


@pytest.mark.parametrize("result", NOT_NATIVE)
def test_results_not_extracted_by_adk_are_extracted(result: object) -> None:
    assert not is_native(result)


def event(*parts: types.Part, **more: Any) -> Event:
    return Event(author="agent", content=types.Content(role="model", parts=list(parts)), **more)


async def test_an_event_contains_no_bytes_and_produces_the_same_chunks() -> None:
    server = Server()
    response = types.Part.from_function_response(
        name="draw",
        response={"a": 1},
        parts=[types.FunctionResponsePart.from_bytes(data=samples.PNG, mime_type="image/png")],
    )
    whole = event(PICTURE, types.Part(text="so"), response)
    partial = event(PICTURE, partial=True)
    before = media_in(PICTURE, "/f/")
    await server.results.replace_files(whole)
    await server.results.replace_files(partial)
    assert "iVBOR" not in whole.model_dump_json()
    parts = whole.content.parts if whole.content else None
    assert [media_in(part, "/f/") for part in parts or []] == [before, None, None]
    assert before is not None
    name = before.url.removeprefix("/f/")
    assert (await server.files.read(CHAT, name))[0] == samples.PNG
    assert partial.content is not None
    assert partial.content.parts == [PICTURE]


async def test_other_fields_of_a_part_with_a_file_are_kept() -> None:
    part = PICTURE.model_copy(update={"thought_signature": b"s", "thought": True})
    changed = event(part)
    await Server().results.replace_files(changed)
    assert changed.content is not None
    [kept] = changed.content.parts or []
    assert (kept.thought, kept.thought_signature, kept.inline_data) == (True, b"s", None)


async def test_files_added_to_an_event_by_a_callback_are_extracted() -> None:
    answer = types.FunctionResponse(name="draw", response={"result": ToolResult(["w", PICTURE])})
    changed = event(types.Part(function_response=answer))
    await Server().results.replace_files(changed)
    assert changed.content is not None
    [kept] = changed.content.parts or []
    assert kept.function_response is not None
    assert kept.function_response.response == {"status": "success", "text_result": "w"}
    [file] = kept.function_response.parts or []
    assert file.file_data is not None
    assert parse_file_uri(file.file_data.file_uri or "", "image/png") is not None


def leaf(chance: random.Random) -> Any:
    """Something that holds nothing else."""
    mime = chance.choice([None, "image/png", "x", "text/plain", "a/b"])
    uri = chance.choice([None, "", "gs://a", "sluicegate:x", "https://a\n", "\0"])
    return chance.choice(
        [
            None,
            float("nan"),
            2**70,
            chance.randbytes(chance.randrange(50)),
            "".join(chr(chance.randrange(0xE000)) for _ in range(chance.randrange(60))),
            types.Blob(data=chance.randbytes(chance.randrange(30)) or None, mime_type=mime),
            types.FileData(file_uri=uri, mime_type=mime),
            types.Part(text=chance.choice([None, "", "x"])),
            PICTURE,
            object(),
            Path(chance.choice(["/etc/passwd", "a\0b", ".", "\udcff"])),
            {"type": chance.choice(["image", 7]), "data": chance.choice(["!", "QQ==", None])},
        ]
    )


def junk(chance: random.Random, depth: int = 0) -> Any:
    """Anything, some of it looking like a file."""
    if depth > 4 or chance.random() < 0.4:
        return leaf(chance)
    items = [junk(chance, depth + 1) for _ in range(chance.randrange(4))]
    names = chance.sample(["content", "isError", "a", 1, None, "result", "type"], len(items))
    return chance.choice([items, tuple(items), dict(zip(names, items, strict=True))])


async def test_no_result_makes_the_extraction_fail() -> None:
    """About 200 KB of results of every kind."""
    chance, server, size = random.Random(6), Server(), 0
    while size < 200_000:
        settled = await server.results.store_result(junk(chance))
        text = json.dumps(settled.outcome, allow_nan=False)
        size += len(text.encode("utf-8", "surrogatepass"))
        from_outcome(json.loads(text))
