from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluicegate.errors import ConfigurationError, ScenarioError
from sluicegate.replay import load_scenarios, parse_scenarios

GOOD = """
scenarios:
  - match: "(?i)search and update"
    agent: root_agent
    responses:
      - parts:
          - thought: "Two calls are needed."
          - text: "I will look first."
          - call: {name: search_database, args: {query: users}}
        delta_chars: 8
        delay_ms: 0
        wait_ms: 0
      - parts: [{call: {name: update_database, args: {rows: 10}}}]
      - parts: [{text: "Found 10 users."}]
        usage: {prompt: 12, output: 9}
        finish: STOP
"""


def with_response(response: str) -> str:
    return f"scenarios:\n  - match: a\n    responses:\n      - {response}\n"


def with_part(part: str) -> str:
    return with_response("{parts: [" + part + "]}")


def saved(folder: Path, text: str, name: str = "s.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def fault(path: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        load_scenarios(path)
    return str(caught.value)


def test_yaml_and_json_are_equivalent(tmp_path: Path) -> None:
    data = {
        "scenarios": [
            {"match": "a", "responses": [{"parts": [{"text": "b"}], "finish": "MAX_TOKENS"}]}
        ]
    }
    as_json = load_scenarios(saved(tmp_path, json.dumps(data), "s.json"))
    as_yaml = load_scenarios(
        saved(
            tmp_path,
            "scenarios: [{match: a, responses: [{parts: [{text: b}], finish: MAX_TOKENS}]}]",
        )
    )
    assert as_json == as_yaml == parse_scenarios(data)


def test_every_documented_key_is_read(tmp_path: Path) -> None:
    scenario = load_scenarios(saved(tmp_path, GOOD)).scenarios[0]
    first, _, last = scenario.responses
    assert scenario.agent == "root_agent"
    assert scenario.match.search("Please SEARCH and update")
    assert (first.parts[0].thought, first.parts[1].text) == (
        "Two calls are needed.",
        "I will look first.",
    )
    assert first.parts[2].call is not None
    assert first.parts[2].call.args == {"query": "users"}
    assert (last.usage.prompt, last.usage.output, last.finish.name) == (12, 9, "STOP")


def test_an_image_path_is_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(b"PNG")
    by_file = with_part("{image: {media_type: image/png, file: dot.png}}")
    in_line = with_part("{image: {media_type: image/png, base64: UE5H}}")
    for text in (by_file, in_line):
        image = load_scenarios(saved(tmp_path, text)).scenarios[0].responses[0].parts[0].image
        assert image is not None
        assert (image.media_type, image.data) == ("image/png", b"PNG")


def test_arguments_that_are_not_streamed_may_be_empty(tmp_path: Path) -> None:
    text = with_part("{call: {name: a, args: {rows: [], note: {}}}}")
    call = load_scenarios(saved(tmp_path, text)).scenarios[0].responses[0].parts[0].call
    assert call is not None
    assert call.args == {"rows": [], "note": {}}


def test_a_scenario_error_is_a_configuration_error() -> None:
    assert issubclass(ScenarioError, ConfigurationError)


FAULTS = {
    "no mapping": ("- a", "In {file}, the file should be a mapping."),
    "empty file": ("", "In {file}, the file should be a mapping."),
    "no scenarios": ("{}", "In {file}, scenarios is missing."),
    "empty list": ("scenarios: []", "In {file}, scenarios should not be empty."),
    "unknown key at the top": (
        "scenarios: [{match: a, responses: [{}]}]\nrules: 1",
        "In {file}, rules is not a known key.",
    ),
    "no match": ("scenarios: [{responses: [{}]}]", "In {file}, scenario 1, match is missing."),
    "match of the second": (
        "scenarios: [{match: a, responses: [{}]}, {match: '(', responses: [{}]}]",
        "In {file}, scenario 2, match is not a valid regular expression "
        "(missing ), unterminated subpattern at position 0).",
    ),
    "match is no text": (
        "scenarios: [{match: 7, responses: [{}]}]",
        "In {file}, scenario 1, match should be a valid pattern.",
    ),
    "one response, no list": (
        "scenarios: [{match: a, responses: {parts: []}}]",
        "In {file}, scenario 1, responses should be a list, also when there is only one.",
    ),
    "no response": (
        "scenarios: [{match: a, responses: []}]",
        "In {file}, scenario 1, responses should not be empty.",
    ),
    "unknown key": (
        with_response("{parts: [], delta_char: 3}"),
        "In {file}, scenario 1, responses[0].delta_char is not a known key.",
    ),
    "unknown kind": (
        with_part("{txt: a}"),
        "In {file}, scenario 1, responses[0].parts[0].txt is not a known key.",
    ),
    "no kind": (
        with_part("{}"),
        "In {file}, scenario 1, responses[0].parts[0] has no kind, such as text or call.",
    ),
    "two kinds": (
        with_part("{text: a}, {text: b, thought: c}"),
        "In {file}, scenario 1, responses[0].parts[1] has more than one kind (text and thought).",
    ),
    "finish reason": (
        with_response("{finish: DONE}"),
        "In {file}, scenario 1, responses[0].finish is not a finish reason the model knows.",
    ),
    "number as text": (
        with_response("{delta_chars: '8'}"),
        "In {file}, scenario 1, responses[0].delta_chars should be a valid integer.",
    ),
    "no characters": (
        with_response("{delta_chars: 0}"),
        "In {file}, scenario 1, responses[0].delta_chars should be greater than or equal to 1.",
    ),
    "truth as text": (
        with_response("{hang: 'on'}"),
        "In {file}, scenario 1, responses[0].hang should be a valid boolean.",
    ),
    "an error that is none": (
        with_response("{error: {code: 200, message: fine}}"),
        "In {file}, scenario 1, responses[0].error.code should be greater than or equal to 400.",
    ),
    "call without name": (
        with_part("{call: {args: {}}}"),
        "In {file}, scenario 1, responses[0].parts[0].call.name is missing.",
    ),
    "arguments that cannot be streamed": (
        with_part("{call: {name: a, args: {rows: []}, stream: true}}"),
        "In {file}, scenario 1, responses[0].parts[0].call cannot be streamed, "
        "because its args hold an empty list or object.",
    ),
    "image without content": (
        with_part("{image: {media_type: image/png}}"),
        "In {file}, scenario 1, responses[0].parts[0].image needs either base64 or file.",
    ),
    "image with two contents": (
        with_part("{image: {media_type: image/png, file: a, base64: YQ==}}"),
        "In {file}, scenario 1, responses[0].parts[0].image needs either base64 or file.",
    ),
    "image that is not base64": (
        with_part("{image: {media_type: image/png, base64: '*'}}"),
        "In {file}, scenario 1, responses[0].parts[0].image holds something else than base64.",
    ),
    "image that is not there": (
        with_part("{image: {media_type: image/png, file: none.png}}"),
        "In {file}, scenario 1, responses[0].parts[0].image names the file none.png, "
        "which cannot be read.",
    ),
    "unknown key of an image": (
        with_part("{image: {media_type: image/png, base64: YQ==, width: 3}}"),
        "In {file}, scenario 1, responses[0].parts[0].image.width is not a known key.",
    ),
    "broken YAML": (
        "scenarios: [",
        "The scenario file {file} is not valid YAML at line 1, column 13 "
        "(expected the node content, but found '<stream end>').",
    ),
    "a key twice": (
        "scenarios:\n  - match: a\n    match: b\n    responses: [{}]",
        "The scenario file {file} is not valid YAML at line 3, column 5 "
        "(the key match stands twice).",
    ),
    "a Python object": (
        "scenarios: !!python/object/apply:os.getcwd []",
        "The scenario file {file} is not valid YAML at line 1, column 12 (could not determine "
        "a constructor for the tag 'tag:yaml.org,2002:python/object/apply:os.getcwd').",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_error_is_one_sentence_that_names_the_field(tmp_path: Path, name: str) -> None:
    text, sentence = FAULTS[name]
    path = saved(tmp_path, text)
    assert fault(path) == sentence.replace("{file}", str(path))


def test_broken_json_names_line_and_column(tmp_path: Path) -> None:
    path = saved(tmp_path, '{"scenarios":\n ]', "s.json")
    assert fault(path) == f"The scenario file {path} is not valid JSON at line 2, column 2."


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    sentence = f"The scenario file {path} cannot be read: no such file or directory."
    assert fault(path) == sentence


def test_a_folder_is_not_a_scenario_file(tmp_path: Path) -> None:
    assert fault(tmp_path) == f"The scenario file {tmp_path} cannot be read: is a directory."


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(b"\xff\xfe")
    assert fault(path) == f"The scenario file {path} is not UTF-8 text."


def test_python_data_is_validated_like_a_file() -> None:
    with pytest.raises(ScenarioError, match=r"^In script, scenario 1, match is missing\.$"):
        parse_scenarios({"scenarios": [{"responses": [{}]}]})


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("send Ada 5", {"to": "Ada", "sum": 5, "note": "{other}", "n": 1}),
        ("send Ada 2.5", {"to": "Ada", "sum": 2.5, "note": "{other}", "n": 1}),
        ("send Ada", {"to": "Ada", "sum": 9, "note": "{other}", "n": 1}),
    ],
)
def test_an_argument_is_a_word_of_the_message(text: str, args: dict[str, object]) -> None:
    call = {
        "name": "send",
        "args": {"to": "{who}", "sum": "{sum=9}", "note": "{other}", "n": 1},
    }
    match = r"send (?P<who>\w+)(?: (?P<sum>[\d.]+))?"
    scenarios = parse_scenarios(
        {"scenarios": [{"match": match, "responses": [{"parts": [{"call": call}]}]}]}
    )
    scenario = scenarios.first(text, None, None)
    assert scenario is not None
    [part] = scenario.filled(text).responses[0].parts
    assert part.call is not None
    assert part.call.args == args
    assert scenario.responses[0].parts[0].call != part.call
