from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.workflow import Workflow

from sluicegate.engine.agents.load_target import load_target
from sluicegate.errors import ConfigurationError

AGENT = """
from google.adk.agents.llm_agent import LlmAgent
root_agent = LlmAgent(name="{name}", model="gemini-2.5-flash")
"""
APP = """
from google.adk.apps.app import App
from google.adk.agents.llm_agent import LlmAgent
root_agent = LlmAgent(name="inner", model="gemini-2.5-flash")
app = App(name="{name}", root_agent=root_agent)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory of the test's own; imports leave no trace."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        module = sys.modules[name]
        places = [*getattr(module, "__path__", ()), getattr(module, "__file__", None) or ""]
        if any(place.startswith(str(tmp_path)) for place in places):
            del sys.modules[name]


def write(path: str, text: str) -> None:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def problem(target: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_target(target)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("bot.py", "bot:root_agent"),
        ("bot.py", "bot"),
        ("bot.py", "bot.py:root_agent"),
        ("bot.py", "./bot.py"),
        ("bots/sales.py", "bots.sales:root_agent"),
        ("bots/sales.py", "bots/sales.py:root_agent"),
        ("bots/agent.py", "bots"),
        ("bots/agent.py", "bots/"),
        ("bots/agent.py", "bots:root_agent"),
        ("bots/__init__.py", "bots"),
        ("a-bot/agent.py", "a-bot"),
        ("json.py", "json.py"),
    ],
)
def test_a_target_is_a_module_a_file_or_a_folder(path: str, target: str) -> None:
    write(path, AGENT.format(name="found"))
    loaded = load_target(target)
    assert isinstance(loaded, LlmAgent)
    assert loaded.name == "found"


def test_a_file_is_found_by_its_full_path_from_anywhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("bots/sales.py", AGENT.format(name="found"))
    monkeypatch.chdir("/")
    loaded = load_target(f"{folder}/bots/sales.py:root_agent")
    assert isinstance(loaded, LlmAgent)


def test_an_app_takes_precedence_over_a_root_agent() -> None:
    write("bot.py", APP.format(name="theirs"))
    loaded = load_target("bot.py")
    assert isinstance(loaded, App)
    assert load_target("bot.py:root_agent") is not loaded


def test_another_object_named_app_does_not_hide_the_root_agent() -> None:
    write("bot.py", AGENT.format(name="found") + "app = object()\n")
    assert isinstance(load_target("bot.py"), LlmAgent)


def test_a_workflow_and_an_attribute_of_an_object_can_be_named() -> None:
    write(
        "flows.py",
        "from google.adk.workflow import Workflow\nclass shop:\n    flow = Workflow(name='flow')\n",
    )
    assert isinstance(load_target("flows.py:shop.flow"), Workflow)


def test_an_agent_folder_may_import_its_own_modules_relatively() -> None:
    write("bots/__init__.py", "from . import agent\n")
    write("bots/words.py", "NAME = 'relative'\n")
    write("bots/agent.py", "from .words import NAME\n" + AGENT.replace('"{name}"', "NAME"))
    loaded = load_target("bots")
    assert isinstance(loaded, LlmAgent)
    assert loaded.name == "relative"
    assert type(loaded) is LlmAgent
    assert sys.modules["bots.agent"].root_agent is loaded


def test_a_file_without_a_package_may_import_its_neighbours() -> None:
    write("bots/words.py", "NAME = 'beside'\n")
    write("bots/sales.py", "from words import NAME\n" + AGENT.replace('"{name}"', "NAME"))
    loaded = load_target("bots/sales.py")
    assert isinstance(loaded, LlmAgent)
    assert loaded.name == "beside"


def test_a_dotenv_file_beside_the_agent_sets_unset_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SLUICEGATE_TEST_SET", "mine")
    monkeypatch.setenv("SLUICEGATE_TEST_NEW", "removed after the test")
    del os.environ["SLUICEGATE_TEST_NEW"]
    write("bots/.env", "SLUICEGATE_TEST_SET=file\nSLUICEGATE_TEST_NEW=file\n")
    write("bots/agent.py", AGENT.format(name="found"))
    load_target("bots")
    assert os.environ["SLUICEGATE_TEST_SET"] == "mine"
    assert os.environ["SLUICEGATE_TEST_NEW"] == "file"


def test_a_folder_of_several_agents_is_refused_with_their_names() -> None:
    write("agents/sales/agent.py", AGENT.format(name="a"))
    write("agents/billing/agent.py", AGENT.format(name="b"))
    write("agents/notes/readme.py", "")
    sentence = problem("agents")
    assert "holds the agents billing, sales" in sentence
    assert "agents/billing" in sentence


@pytest.mark.parametrize(
    ("files", "target", "words"),
    [
        ({}, "", ["target is empty", "agent.py:root_agent"]),
        ({}, ":root_agent", ["target is empty"]),
        ({}, "missing.py", ["no file missing.py"]),
        ({}, "bots/missing.py:root_agent", ["no file bots/missing.py"]),
        ({}, "no-such-thing:root_agent", ["no file no-such-thing"]),
        ({}, "missing:root_agent", ["no module 'missing'"]),
        ({}, "missing.deeper:root_agent", ["no module 'missing'"]),
        ({"bots/a.py": ""}, "bots.missing", ["no module 'bots.missing'"]),
        ({"bot.py": "x = 1\n"}, "bot.py", ["has neither app nor root_agent", "bot.py:NAME"]),
        (
            {"bot.py": "root_agent = 1\n"},
            "bot.py:agent",
            ["no attribute 'agent'", "it has root_agent"],
        ),
        ({"bot.py": "x = 1\n"}, "bot.py:agent", ["bot.py has no attribute 'agent'."]),
        ({"bot.py": "root_agent = 'me'\n"}, "bot.py", ["bot.py:root_agent is of type str"]),
        ({"bot.py": "def make(): ...\n"}, "bot.py:make", ["bot.py:make is of type function"]),
        ({"bots/notes.txt": ""}, "bots", ["no agent folder", "agent.py", "__init__.py"]),
        ({"bots/__init__.py": ""}, "bots", ["no agent folder"]),
        ({"bot.txt": "root_agent = 1\n"}, "./bot.txt", ["bot.txt is not a Python file"]),
    ],
)
def test_an_invalid_target_is_reported_in_one_sentence(
    files: dict[str, str], target: str, words: list[str]
) -> None:
    for path, text in files.items():
        write(path, text)
    sentence = problem(target)
    assert all(word in sentence for word in words), sentence


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n1 / 0\n", ["ZeroDivisionError at", "bot.py:2: division by zero"]),
        ("x = (\n", ["SyntaxError at", "bot.py:1"]),
        (
            "import nonexistent_library\n",
            ["ModuleNotFoundError at", "bot.py:1", "nonexistent_library"],
        ),
        ("raise SystemExit(3)\n", ["SystemExit at", "bot.py:1: 3"]),
        ("import json\njson.loads('{')\n", ["JSONDecodeError at", "bot.py:2"]),
        ("raise ValueError('one.\\ntwo')\n", ["ValueError at", "bot.py:1: one."]),
        ("raise KeyError\n", ["KeyError at", "bot.py:1."]),
    ],
)
@pytest.mark.parametrize("target", ["bot:root_agent", "bot.py:root_agent", "./bot.py"])
def test_an_error_in_user_code_is_reported_with_its_file_and_line(
    text: str, words: list[str], target: str
) -> None:
    write("bot.py", text)
    sentence = problem(target)
    assert "cannot be imported" in sentence
    assert all(word in sentence for word in words), sentence


def test_a_file_that_failed_can_be_corrected_and_loaded() -> None:
    write("bot.py", "1 / 0\n")
    problem("bot.py")
    write("bot.py", AGENT.format(name="mended"))
    assert isinstance(load_target("bot.py"), LlmAgent)


def test_a_folder_whose_package_name_is_taken_is_refused() -> None:
    write("pytest/__init__.py", "")
    write("pytest/agent.py", AGENT.format(name="found"))
    assert "rename the folder" in problem("pytest")


def test_files_of_the_same_name_are_separate_modules() -> None:
    loaded = {}
    for place in ("one", "two", "three"):
        write(f"{place}/json.py", AGENT.format(name=place) + f"here = {place!r}\n")
        loaded[place] = load_target(f"{place}/json.py")

    modules = [module for module in sys.modules.values() if getattr(module, "here", None) in loaded]
    assert {module.here for module in modules} == set(loaded)
    assert all(module.root_agent is loaded[module.here] for module in modules)
