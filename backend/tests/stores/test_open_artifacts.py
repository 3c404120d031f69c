from __future__ import annotations

from pathlib import Path

import pytest
from google.adk.artifacts import FileArtifactService, InMemoryArtifactService
from google.adk.cli.service_registry import get_service_registry
from google.genai import types

from sluicegate.errors import ConfigurationError
from sluicegate.stores.open_artifacts import open_artifacts


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "file://localhost{}"])
async def test_files_are_stored_in_the_folder_of_the_url(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "with space" / "files"
    service = open_artifacts(form.format(str(folder).replace(" ", "%20")))
    part = types.Part(inline_data=types.Blob(data=b"bytes", mime_type="image/png"))
    names = {"app_name": "app", "user_id": "ann", "session_id": "chat", "filename": "a.png"}
    await service.save_artifact(**names, artifact=part)  # type: ignore[arg-type]
    again = await FileArtifactService(folder).load_artifact(**names)  # type: ignore[arg-type]
    assert again is not None
    assert again.inline_data is not None
    assert again.inline_data.data == b"bytes"


def test_a_relative_folder_is_below_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    open_artifacts("file:.sluicegate/artifacts")
    assert (tmp_path / ".sluicegate" / "artifacts").is_dir()


def test_every_service_registered_with_adk_can_be_opened() -> None:
    assert isinstance(open_artifacts("memory://"), InMemoryArtifactService)
    made = InMemoryArtifactService()
    get_service_registry().register_artifact_service("shelf", lambda uri, **_: made)
    assert open_artifacts("shelf://anywhere") is made


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "no scheme"),
        ("files", "no scheme"),
        ("ftp://host/path", "begins with ftp"),
        ("file:", "names no folder"),
        ("file:///", "names no folder"),
        ("file://elsewhere/path", "names no folder"),
        ("http://[half", "cannot be read"),
        ("file:/dev/null/below", "/dev/null/below"),
    ],
)
def test_a_url_that_names_no_service_is_refused_in_one_sentence(url: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as refused:
        open_artifacts(url)
    assert str(refused.value).count("\n") == 0


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ModuleNotFoundError("No module", name="shelves"), r"\(shelves\); install it"),
        (RuntimeError("password pw is wrong"), r"cannot be opened \(RuntimeError\)"),
    ],
)
def test_a_service_that_cannot_be_opened_is_named_without_its_secrets(
    error: Exception, words: str
) -> None:
    def fail(uri: str, **_: object) -> InMemoryArtifactService:
        raise error

    get_service_registry().register_artifact_service("broken", fail)
    with pytest.raises(ConfigurationError, match=words) as refused:
        open_artifacts("broken://user:pw@host")
    assert "pw" not in str(refused.value)
