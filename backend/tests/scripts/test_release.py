"""A release has one version, a changelog section, and the same bytes wherever it is built."""

from __future__ import annotations

import os
import re
import tarfile
from pathlib import Path

import pytest

from scripts import cut_release
from scripts.compare_builds import differences
from scripts.cut_release import PLACES, cut, main, versions, with_version
from scripts.image_steps import DOCKERFILE, Step, below, steps
from scripts.release import checksums, pack_folder
from sluicegate import __version__
from tests.docs.markdown import ROOT

CHANGELOG = """# Changelog

## [Unreleased]

### Added

- Added a thing.

## [0.1.0] - 2026-01-01

- The first.
"""


@pytest.mark.parametrize("name", PLACES)
def test_every_file_has_the_version_of_the_project(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    found = versions(name, text)
    assert found
    assert set(found) == {__version__}
    changed = with_version(name, text, "12.34.56")
    assert set(versions(name, changed)) == {"12.34.56"}
    assert changed.replace("12.34.56", __version__) == text


def test_no_other_file_names_the_version_of_the_project() -> None:
    lock = (ROOT / "package-lock.json").read_text("utf-8")
    assert len(versions("package-lock.json", lock)) == 3
    named = re.compile(rf"sluicegate[-:@=\"' ]+{re.escape(__version__)}(?![\d.]*\d)")
    files = [*(ROOT / "deploy").iterdir(), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    others = [
        str(path.relative_to(ROOT))
        for path in files
        if path.is_file() and named.search(path.read_text("utf-8", "ignore"))
    ]
    assert set(others) <= set(PLACES)


def test_the_unreleased_entries_become_the_section_of_the_version() -> None:
    assert cut(CHANGELOG, "0.2.0", "2026-11-26") == CHANGELOG.replace(
        "## [Unreleased]\n", "## [Unreleased]\n\n## [0.2.0] - 2026-11-26\n"
    )


def test_the_first_release_cuts_the_whole_changelog() -> None:
    first = CHANGELOG.partition("\n## [0.1.0]")[0] + "\n"
    found = cut(first, "0.1.0", "2026-11-26")
    assert found.endswith(
        "## [Unreleased]\n\n## [0.1.0] - 2026-11-26\n\n### Added\n\n- Added a thing.\n\n"
    )


@pytest.mark.parametrize(
    ("changelog", "version", "sentence"),
    [
        (CHANGELOG, "0.1.0", "already has a section 0.1.0"),
        (CHANGELOG.replace("- Added a thing.", ""), "0.2.0", "nothing to release"),
        ("# Changelog\n", "0.2.0", "nothing to release"),
    ],
)
def test_a_changelog_that_cannot_be_cut_is_refused_in_one_sentence(
    changelog: str, version: str, sentence: str
) -> None:
    with pytest.raises(SystemExit, match=sentence):
        cut(changelog, version, "2026-11-26")


@pytest.mark.parametrize("arguments", [[], ["0.2"], ["v0.2.0"], ["0.2.0", "0.3.0"]])
def test_a_version_that_is_none_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="Give the version"):
        main(arguments)


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that name the version, and a changelog."""
    for name in PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    monkeypatch.setattr(cut_release, "ROOT", tmp_path)
    return tmp_path


def test_one_command_sets_the_version_everywhere(copied: Path) -> None:
    main(["12.34.56"])
    for name in PLACES:
        assert set(versions(name, (copied / name).read_text("utf-8"))) == {"12.34.56"}
    assert "## [12.34.56] - 20" in (copied / "CHANGELOG.md").read_text("utf-8")


def test_nothing_is_written_if_a_file_does_not_name_the_version(copied: Path) -> None:
    (copied / "deploy/compose.yaml").write_text("services: {}\n")
    with pytest.raises(SystemExit, match=r"compose\.yaml does not name the version"):
        main(["12.34.56"])
    assert (copied / "CHANGELOG.md").read_text("utf-8") == CHANGELOG
    assert __version__ in (copied / "pyproject.toml").read_text("utf-8")


def test_a_packed_folder_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    archives: list[Path] = []
    for name, order, mode in (("a", ["x", "y"], 0o600), ("b", ["y", "x"], 0o644)):
        for file in order:
            path = tmp_path / name / "sub" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file)
            path.chmod(mode)
            os.utime(path, (len(archives), len(archives)))
        (tmp_path / f"out-{name}").mkdir()
        archive = tmp_path / f"out-{name}" / "docs.tar.gz"
        pack_folder(tmp_path / name, archive, time=1_700_000_000)
        archives.append(archive)
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as packed:
        assert packed.getnames() == ["docs/sub/x", "docs/sub/y"]
    assert re.fullmatch(r"[0-9a-f]{64}  docs.tar.gz\n", checksums(tmp_path / "out-a"))


def test_builds_that_differ_are_named() -> None:
    assert differences({"a": b"1", "b": b"2"}, {"a": b"1", "b": b"2"}) == []
    assert differences({"a": b"1", "b": b"2"}, {"a": b"2", "c": b""}) == ["a", "b", "c"]


def test_the_steps_of_the_image_are_read_as_a_builder_reads_them() -> None:
    text = 'ARG A=1\n# a comment\nRUN one \\\n    && two\nCMD ["x"]\n'
    found = steps(text)
    assert found == [Step("ARG", "A=1"), Step("RUN", "one      && two"), Step("CMD", '["x"]')]
    used = {step.instruction for step in steps(DOCKERFILE.read_text("utf-8"))}
    # What scripts/image_steps.py does not know it would leave out.
    assert used == {"ARG", "FROM", "COPY", "RUN", "ENV", "USER", "WORKDIR", "EXPOSE", "CMD"}
    moved = below(Path("/r"), "pip -r /tmp/a.lock /opt/b/bin /usr/opt/c /data")
    assert moved == "pip -r /r/tmp/a.lock /r/opt/b/bin /usr/opt/c /r/data"
