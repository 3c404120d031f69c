"""There is one place in which a request is shaped, and it knows which model is called."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import sluicegate
from sluicegate.media.capabilities import CapabilityTable
from sluicegate.media.selection import ModelProfile
from sluicegate.media.shaping import RequestShaper
from sluicegate.wire.files import StoredFile
from tests.media import samples
from tests.media.history import said
from tests.media.test_shaping import stored

SOURCES = Path(sluicegate.__file__).parent


@pytest.mark.parametrize("name", ["ModelProfile", "RequestShaper"])
def test_requests_are_shaped_in_one_place(name: str) -> None:
    """A second place would be one that somebody forgets to tell the model (S3-R17)."""
    found = [
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        for _ in re.findall(rf"(?<!class )\b{name}\(", path.read_text("utf-8"))
    ]

    assert found == ["engine/models/model_files.py"]


def test_the_model_is_never_left_out() -> None:
    """Neither the row nor the way to the model has a default (S3-R05)."""
    shape, shaping = inspect.signature(ModelProfile), inspect.signature(RequestShaper)

    assert shape.parameters["row"].default is inspect.Parameter.empty
    assert shape.parameters["route"].default is inspect.Parameter.empty
    assert shaping.parameters["shape"].default is inspect.Parameter.empty


def test_only_what_is_sent_is_read() -> None:
    """What is too old, too large or of a kind nobody reads stays in the store (S4-R44)."""
    old = StoredFile.of(samples.PNG, "image/png")
    bitmap = StoredFile.of(samples.BMP, "image/bmp")
    huge = StoredFile("0" * 32 + ".png", "image/png", 2**30, "0" * 64)
    new = StoredFile.of(samples.JPEG, "image/jpeg")
    row = CapabilityTable.load().row("gemini-2.5-pro")
    contents = (
        said("one", stored(old)),
        said("two", stored(bitmap), stored(huge), stored(new), stored(new)),
    )

    assert RequestShaper(contents, ModelProfile(row, "genai", turns=1)).wanted == [(new, "bytes")]
