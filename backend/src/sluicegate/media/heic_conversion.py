"""Conversion of photographs that few models read, HEIC and HEIF, to JPEG.

It needs the extra ``images``, Pillow with pillow-heif; without it such files are sent by name.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from io import BytesIO
from typing import Final

from sluicegate.errors import MediaError

CONVERTED_TYPES: Final = frozenset({"image/heic", "image/heif"})
CONVERSION_TYPE: Final = "image/jpeg"
MAX_PIXELS: Final = 100_000_000
_QUALITY: Final = 90


@cache
def can_convert() -> bool:
    """Whether the libraries are installed."""
    return find_spec("PIL") is not None and find_spec("pillow_heif") is not None


def convert_to_jpeg(data: bytes, *, max_pixels: int = MAX_PIXELS) -> bytes:
    """Return an image as JPEG, upright and without metadata; it takes a moment.

    Raises:
        MediaError: It cannot be read, or has too many pixels.
    """
    # Both are optional, and their import takes a while.
    from PIL import Image, ImageOps  # noqa: PLC0415
    from pillow_heif import register_heif_opener  # noqa: PLC0415

    register_heif_opener()
    try:
        with Image.open(BytesIO(data), formats=["HEIF"]) as image:
            if image.width * image.height > max_pixels:
                raise MediaError("The image has too many pixels.")
            written = BytesIO()
            upright = ImageOps.exif_transpose(image)
            upright.convert("RGB").save(written, "JPEG", quality=_QUALITY)
            return written.getvalue()
    except (OSError, ValueError, SyntaxError) as error:
        if isinstance(error, MediaError):
            raise
        raise MediaError("The image cannot be read.") from None
