"""The metadata of the packages: what an installation brings, and what it can bring."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib

import pytest

from tests.docs.markdown import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
LOCKS = ("requirements.lock", "deploy/requirements.lock")


def test_the_extra_of_everything_is_that_of_all_others() -> None:
    [everything] = EXTRAS["all"]
    named = re.fullmatch(r"sluicegate\[(.+)\]", everything)
    assert named is not None
    assert set(named[1].split(",")) == set(EXTRAS) - {"all"}


def test_an_extra_that_is_tested_has_the_range_of_the_tests() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    tested = {entry for entry in groups["dev"] if isinstance(entry, str)}
    for name in ("postgresql", "valkey", "workers", "litellm", "otel"):
        assert set(EXTRAS[name]) <= tested, name


@pytest.mark.parametrize("lock", LOCKS)
def test_nothing_of_spanner_is_installed(lock: str) -> None:
    names = re.findall(r"^([a-z0-9-]+)==", (ROOT / lock).read_text("utf-8"), re.MULTILINE)
    assert "google-adk" in names
    assert not [name for name in names if "spanner" in name or name.startswith("grpc")]


def test_the_session_service_needs_nothing_of_spanner() -> None:
    program = (
        "import sys\n"
        "for name in ('grpc', 'google.cloud.spanner', 'google.cloud.sqlalchemy_spanner'):\n"
        "    sys.modules[name] = None\n"
        "import google.adk.sessions.database_session_service, sluicegate.server.serve_commands\n"
        "print('ok')"
    )
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "ok\n"


def test_both_packages_have_one_version_and_name_what_they_need() -> None:
    client = json.loads((ROOT / "frontend/client/package.json").read_text("utf-8"))
    assert client["version"] == PROJECT["version"]
    assert client["license"] == PROJECT["license"]
    assert client["author"] == PROJECT["authors"][0]["name"]
    workspace = json.loads((ROOT / "package.json").read_text("utf-8"))
    assert client["engines"] == workspace["engines"]
