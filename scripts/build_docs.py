"""Builds the documentation site into build/docs/html: static files that any server can serve.

The pages are those of docs/, which also read well in a checkout, and the README files. Links
between them are rewritten for the site; a link to a file that it does not have becomes plain text.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
BUILD: Final = ROOT / "build" / "docs"
API: Final = ROOT / "build" / "api"
PLAYGROUND: Final = ROOT / "build" / "playground"
SOURCE: Final = ROOT / "backend" / "src"

OTHER_PAGES: Final = {
    "README.md": "readme.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "frontend/client/README.md": "reference/npm-package.md",
}
"""The pages outside docs/, and their paths in the site."""

TYPESCRIPT: Final = """# TypeScript API

The npm package has its own reference: [every entry and every type](../typescript/index.html), from
the doc comments. [The package's page](npm-package.md) shows how its parts are used together.
"""

TRY_IT: Final = """# Try it

Ask the agent to pay, and decide: this is the chat page with a recording in place of a server.

<iframe src="playground/index.html" title="A recorded chat" width="100%" height="620"
  style="border: 1px solid gray; border-radius: 0.5rem"></iframe>

`PlayerTransport` of the [npm package](reference/npm-package.md) plays it; [record and
replay](how-to/record-and-replay.md) shows how to record a chat of your own.
"""

SERVER: Final = "http://127.0.0.1:8000"

GENERATED: Final = {
    "HTTP API": "reference/http.md",
    "npm package": "reference/npm-package.md",
    "Python API": "reference/python.md",
    "TypeScript API": "reference/typescript.md",
}
"""The pages of the section Reference that are not in docs/, by their titles."""

_LINK: Final = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_CODE: Final = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_ENTRY: Final = re.compile(r"^- \[([^\]]+)\]\(([^)]+)\)", re.MULTILINE)


def pages() -> dict[Path, PurePosixPath]:
    """The source file of each page, with its path in the site."""
    docs = ROOT / "docs"
    found = {path: PurePosixPath(path.relative_to(docs)) for path in sorted(docs.rglob("*.md"))}
    others = {ROOT / path: PurePosixPath(place) for path, place in OTHER_PAGES.items()}
    return {**found, **others}


def site_text(text: str, page: Path, places: dict[Path, PurePosixPath]) -> str:
    """The text of a page with its links rewritten, except in code."""
    parts, end = [], 0
    for code in _CODE.finditer(text):
        # The theme would load the library that draws it from another host.
        shown = code.group().replace("```mermaid", "```text", 1)
        parts += [_rewritten(text[end : code.start()], page, places), shown]
        end = code.end()
    return "".join([*parts, _rewritten(text[end:], page, places)])


def _rewritten(text: str, page: Path, places: dict[Path, PurePosixPath]) -> str:
    def replace(link: re.Match[str]) -> str:
        image, label, address = link.groups()
        path, hash_sign, anchor = address.partition("#")
        if "://" in address or not path:
            return link.group()
        target = places.get((page.parent / path).resolve())
        if target is None:
            return label
        relative = os.path.relpath(target, places[page].parent)
        return f"{image}[{label}]({PurePosixPath(relative)}{hash_sign}{anchor})"

    return _LINK.sub(replace, text)


def navigation(index: str) -> str:
    """The navigation in TOML: the sections and entries of docs/index.md."""
    entries: list[str] = ['  { "Home" = "index.md" },', '  { "Try it" = "try-it.md" },']
    sections = _SECTION.split(index)[1:]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        listed = [f'    {{ "{name}" = "{path}" }},' for name, path in _ENTRY.findall(body)]
        if title == "Reference":
            listed += [f'    {{ "{name}" = "{path}" }},' for name, path in GENERATED.items()]
        entries += [f'  {{ "{title}" = [', *listed, "  ] },"]
    return "\n".join(["nav = [", *entries, "]"])


async def http_document() -> dict[str, Any]:
    """The OpenAPI document of a server with every route."""
    import httpx  # noqa: PLC0415 - of the development environment
    from google.adk.agents import LlmAgent  # noqa: PLC0415 - importing ADK takes seconds

    from sluicegate import ScriptedModel, create_app  # noqa: PLC0415 - as above

    model = ScriptedModel.from_data({"scenarios": [{"match": ".", "responses": [{"parts": []}]}]})
    with tempfile.TemporaryDirectory() as folder:
        sessions, artifacts = f"sqlite+aiosqlite:///{folder}/chats.db", f"file:{folder}/files"
        agent = LlmAgent(name="agent", model=model)
        app = create_app(agent, sessions=sessions, artifacts=artifacts, page=False)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=SERVER) as client:
            response = await client.get("/api/openapi.json")
    return dict(response.raise_for_status().json())


def http_reference(document: dict[str, Any]) -> str:
    """A page with every operation of the OpenAPI document."""
    blocks = [
        "# HTTP API",
        "Every route of a server with the default prefix `/api`. "
        "The same as [OpenAPI document](openapi.json), which each server has at "
        "`/api/openapi.json`; the [protocol](protocol.md) has the rules.",
    ]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            blocks += _operation(f"{method.upper()} `{path}`", operation)
    for path, handshake in document["x-websockets"].items():
        blocks += _operation(f"WebSocket `{path}`", handshake)
    blocks.append("## Schemas")
    for name, schema in document["components"]["schemas"].items():
        shown = json.dumps(schema, indent=2, ensure_ascii=False)
        blocks += [f"### {name}", f"```json\n{shown}\n```"]
    return "\n\n".join([*blocks, ""])


def _operation(title: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"## {title}"
    yield operation["summary"]
    if parameters := operation["parameters"]:
        yield _table(["parameter", "in", "meaning"], map(_parameter, parameters))
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"Body: `{media_type}`{_schema_name(content['schema'])}."
    answers = sorted(operation["responses"].items())
    yield _table(["status", "meaning", "`x-error-code`"], map(_answer, answers))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _parameter(parameter: dict[str, Any]) -> list[str]:
    return [f"`{parameter['name']}`", parameter["in"], parameter.get("description", "")]


def _schema_name(schema: dict[str, Any]) -> str:
    kinds = schema.get("anyOf", [schema])
    names = [str(kind["$ref"]).rpartition("/")[2] for kind in kinds if "$ref" in kind]
    links = " or ".join(f"[{name}](#{name.lower()})" for name in names)
    return f", {links}" if links else ""


def _answer(answer: tuple[str, dict[str, Any]]) -> list[str]:
    status, described = answer
    codes = described.get("headers", {}).get("x-error-code", {}).get("schema", {}).get("enum", [])
    names = [_schema_name(content["schema"]) for content in described.get("content", {}).values()]
    meaning = described["description"] + "".join(names)
    return [status, meaning, ", ".join(f"`{code}`" for code in codes)]


def python_reference() -> str:
    """A page with every public name, from the docstrings."""
    import sluicegate  # noqa: PLC0415 - importing ADK takes seconds

    names = [name for name in sluicegate.__all__ if not name.startswith("_")]
    blocks = [f"::: {_defined_in(getattr(sluicegate, name), name)}" for name in names]
    title = "# Python API\n\nEverything that `sluicegate` exports."
    return "\n\n".join([title, *blocks, ""])


def _defined_in(value: object, name: str) -> str:
    return f"{getattr(value, '__module__', 'sluicegate')}.{name}"


def stage() -> None:
    """Write the sources of the site into build/docs."""
    shutil.rmtree(BUILD, ignore_errors=True)
    staged = BUILD / "pages"
    files = {
        path: PurePosixPath(path.relative_to(ROOT / "docs"))
        for path in (ROOT / "docs").rglob("*")
        if path.suffix in (".svg", ".png", ".webp")
    }
    places = {**pages(), **files}
    for source, place in places.items():
        target = staged / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if source in files:
            shutil.copyfile(source, target)
        else:
            target.write_text(site_text(source.read_text("utf-8"), source, places), "utf-8")
    document = asyncio.run(http_document())
    generated = {
        "python.md": python_reference(),
        "http.md": http_reference(document),
        "typescript.md": TYPESCRIPT,
        "../try-it.md": TRY_IT,
        "openapi.json": json.dumps(document, indent=2, ensure_ascii=False),
    }
    for name, text in generated.items():
        (staged / "reference" / name).write_text(text, "utf-8")
    for built, folder in ((API, "typescript"), (PLAYGROUND, "playground")):
        shutil.copytree(built, staged / folder)
    config = (ROOT / "docs" / "site" / "zensical.toml").read_text("utf-8")
    index = (staged / "index.md").read_text("utf-8")
    config = config.replace("[project]\n", f"[project]\n{navigation(index)}\n", 1)
    config = config.replace('paths = ["source"]', f'paths = ["{SOURCE.as_posix()}"]')
    (BUILD / "zensical.toml").write_text(config, "utf-8")


def main() -> int:
    """Build the site; a link that leads nowhere is an error. Return the exit code."""
    stage()
    zensical = Path(sys.executable).parent / "zensical"
    return subprocess.run(
        [zensical, "build", "--strict", "--clean"], cwd=BUILD, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
