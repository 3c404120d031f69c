"""Joins frames into an animated WebP: ``python scripts/moving_picture.py FOLDER FILE``.

The frames are ``FOLDER/NUMBER-MILLISECONDS.png``, as `make pictures` takes them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image


def main(folder: Path, file: Path) -> None:
    """Write the picture, which repeats without end."""
    frames = sorted(folder.glob("*.png"))
    first, *rest = (Image.open(frame).convert("RGB") for frame in frames)
    first.save(
        file,
        save_all=True,
        append_images=rest,
        duration=[int(frame.stem.partition("-")[2]) for frame in frames],
        loop=0,
        lossless=True,
        method=6,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
