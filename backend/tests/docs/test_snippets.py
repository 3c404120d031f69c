"""Every Python snippet of the pages runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.adk.agents import LlmAgent

from sluicegate import ScriptedModel
from tests.docs.markdown import PAGES, ROOT, fences

ELSEWHERE = {
    "docs/how-to/authenticate.md": "server/test_authenticate_how_to.py runs them with its keys",
    "docs/how-to/webhooks.md": "server/test_webhooks_how_to.py sends them the events of a server",
    "docs/how-to/record-and-replay.md": "they read recordings; replay/ tests what they call",
}
"""Pages whose snippets need more than a module."""


def snippets(page: Path) -> list[str]:
    """The Python snippets of a page."""
    return [fence.code for fence in fences(page.read_text("utf-8")) if fence.language == "python"]


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if snippets(page) and str(page.relative_to(ROOT)) not in ELSEWHERE],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_snippets_of_a_page_run_in_their_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "brand").mkdir()
    (tmp_path / "brand" / "acme.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    (tmp_path / "brand" / "acme.css").write_text(":root { --accent: green; }")
    script = {"scenarios": [{"match": ".", "responses": [{"parts": [{"text": "Yes."}]}]}]}
    model = ScriptedModel.from_data(script)
    names = {"__name__": "snippet", "root_agent": LlmAgent(name="agent", model=model)}
    for number, code in enumerate(snippets(page)):
        exec(compile(code, f"{page.name}:{number}", "exec"), names)


def test_the_pages_that_are_left_out_have_snippets() -> None:
    assert [page for page in ELSEWHERE if not snippets(ROOT / page)] == []
