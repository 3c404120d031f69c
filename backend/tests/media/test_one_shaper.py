"""Requests are shaped in one place, for the model that is called."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import sluicegate
from sluicegate.media.file_selection import ModelProfile
from sluicegate.media.model_capability_table import CapabilityTable
from sluicegate.media.model_request_shaping import RequestShaper
from sluicegate.wire.stored_files import StoredFile
from tests.media import samples
from tests.media.history import said
from tests.media.test_model_request_shaping import stored

SOURCES = Path(sluicegate.__file__).parent


@pytest.mark.parametrize("name", ["ModelProfile", "RequestShaper"])
def test_requests_are_shaped_in_one_place(name: str) -> None:
    """A second place could shape for another model (S3-R17)."""
    places = [
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        for _ in re.findall(rf"(?<!class )\b{name}\(", path.read_text("utf-8"))
    ]

    assert places == ["media/model_wrapper.py"]


def test_the_model_has_no_default() -> None:
    """Neither the capabilities nor the route has a default (S3-R05)."""
    profile, shaper = inspect.signature(ModelProfile), inspect.signature(RequestShaper)

    assert profile.parameters["row"].default is inspect.Parameter.empty
    assert profile.parameters["route"].default is inspect.Parameter.empty
    assert shaper.parameters["profile"].default is inspect.Parameter.empty


def test_only_files_that_are_sent_are_loaded() -> None:
    """Files that are too old, too large or of an unreadable type are not loaded (S4-R44)."""
    old = StoredFile.of(samples.PNG, "image/png")
    bitmap = StoredFile.of(samples.BMP, "image/bmp")
    huge = StoredFile("0" * 32 + ".png", "image/png", 2**32, "0" * 64)
    new = StoredFile.of(samples.JPEG, "image/jpeg")
    row = CapabilityTable.load().row("gemini-2.5-pro")
    contents = (
        said("one", stored(old)),
        said("two", stored(bitmap), stored(huge), stored(new), stored(new)),
    )

    assert RequestShaper(contents, ModelProfile(row, "genai", turns=1)).required == [(new, "bytes")]
