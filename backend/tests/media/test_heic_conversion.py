"""Photographs in HEIC, which Gemini reads and other models do not."""

from __future__ import annotations

import base64
import json
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image
from pillow_heif import register_heif_opener

from sluicegate.errors import MediaError
from sluicegate.media import heic_conversion
from tests.engine.stage import words
from tests.media import samples
from tests.media.test_chats import attach, file_part

if TYPE_CHECKING:
    from tests.media.conftest import Open
    from tests.media.families import Family

TURNED = 6
"""The orientation of a photograph that is shown turned to the right."""


def photograph() -> bytes:
    """A green photograph, 64 by 48 pixels before it is turned, with the place where it was made."""
    register_heif_opener()
    exif = Image.Exif()
    exif[274] = TURNED
    exif[271] = "A camera of a person"
    written = BytesIO()
    Image.new("RGB", (64, 48), (22, 163, 74)).save(written, "HEIF", exif=exif.tobytes())
    return written.getvalue()


def images(value: Any) -> list[bytes]:
    """Every JPEG in a request."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [image for item in value for image in images(item)]
    text = value.rpartition(",")[2] if isinstance(value, str) else ""
    return [base64.b64decode(text)] if text.startswith("/9j/") else []


@pytest.mark.parametrize("name", ["openai", "claude", "claude-adk"])
async def test_a_photograph_is_converted_for_a_model_that_does_not_read_it(
    families: dict[str, Family], open_with: Open, name: str
) -> None:
    families[name].endpoint.refused.clear()
    async with open_with(families[name].make()) as engine:
        turn = await attach(engine, file_part(photograph(), "image/heic", "photo.heic"))
    assert words(turn.message) == "In all I see image/jpeg."
    assert families[name].endpoint.refused == []
    [sent] = images(families[name].endpoint.last)
    assert b"A camera of a person" not in sent
    with Image.open(BytesIO(sent)) as image:
        assert image.size == (48, 64)
        [colour] = [pixel for _, pixel in image.convert("RGB").getcolors() or []]
    assert colour == pytest.approx((22, 163, 74), abs=12)


async def test_a_model_that_reads_it_gets_the_photograph_itself(
    families: dict[str, Family], open_with: Open
) -> None:
    data = photograph()
    async with open_with(families["gemini-3"].make()) as engine:
        turn = await attach(engine, file_part(data, "image/heic", "photo.heic"))
    assert words(turn.message) == "In all I see image/heic."
    sent = json.dumps(families["gemini-3"].endpoint.last)
    assert base64.urlsafe_b64encode(data).decode() in sent


REASONS = [
    (False, samples.HEIC, "it could not be converted to an image that this model reads"),
    (True, photograph(), "this model does not read files of the type image/heic"),
]


@pytest.mark.parametrize(("is_missing", "data", "reason"), REASONS)
async def test_the_user_reads_why_a_photograph_is_not_sent(
    families: dict[str, Family],
    open_with: Open,
    monkeypatch: pytest.MonkeyPatch,
    is_missing: bool,
    data: bytes,
    reason: str,
) -> None:
    if is_missing:
        monkeypatch.setattr(heic_conversion, "find_spec", lambda _: None)
    heic_conversion.can_convert.cache_clear()
    async with open_with(families["claude"].make()) as engine:
        turn = await attach(engine, file_part(data, "image/heic", "photo.heic"))
    heic_conversion.can_convert.cache_clear()
    sentence = f'The model was not given the file "photo.heic": {reason}.'
    assert sentence in [getattr(chunk, "data", {}).get("text") for chunk in turn.chunks]


def test_a_picture_with_too_many_pixels_is_not_decoded() -> None:
    with pytest.raises(MediaError, match="pixels"):
        heic_conversion.convert_to_jpeg(photograph(), max_pixels=64 * 48 - 1)
