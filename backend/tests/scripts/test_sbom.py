"""The bills of materials list what the lock files pin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.sbom import LOCK, PAGE, ROOT, listed, locked_npm, locked_python, require, write_python


def test_the_python_packages_are_listed_with_their_hashes(tmp_path: Path) -> None:
    path = write_python(tmp_path)
    document = json.loads(path.read_text("utf-8"))
    assert document["metadata"]["component"]["name"] == "sluicegate"
    parts = document["components"]
    assert len(parts) == len(locked_python(LOCK.read_text("utf-8"))) > 50
    assert {part["name"].lower() for part in parts} >= {"google-adk", "asyncpg", "redis"}
    assert all(part["purl"].startswith("pkg:pypi/") for part in parts)
    references = [part["externalReferences"][0] for part in parts]
    assert all(reference["hashes"][0]["alg"] == "SHA-256" for reference in references)


def test_the_dependencies_of_the_page_are_those_of_its_lock() -> None:
    found = locked_npm((ROOT / "package-lock.json").read_text("utf-8"), PAGE)
    assert {"ai", "react", "react-dom"} <= {name for name, _ in found}


def test_a_missing_package_fails() -> None:
    document = {"bomFormat": "CycloneDX", "components": [{"name": "a", "version": "1"}]}
    found = listed(json.dumps(document))
    require({("a", "1")}, found, "x.json")
    with pytest.raises(SystemExit, match=r"x.json lacks 1 locked packages, the first is b==2\."):
        require({("a", "1"), ("b", "2")}, found, "x.json")
    with pytest.raises(SystemExit, match="not written a CycloneDX document"):
        listed("{}")
