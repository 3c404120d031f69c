"""Links between the pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.markdown import DOCS, PAGES, ROOT, anchors, links


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_points_to_an_existing_file_and_heading(page: Path) -> None:
    lost = []
    for link in links(page.read_text("utf-8")):
        path, _, anchor = link.partition("#")
        if "://" in path:
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            lost.append(link)

    assert lost == []


def test_every_page_can_be_reached_from_the_index() -> None:
    index = DOCS / "index.md"
    reached = {index}
    waiting = [index]
    while waiting:
        page = waiting.pop()
        for link in links(page.read_text("utf-8")):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target in PAGES and target not in reached:
                reached.add(target)
                waiting.append(target)

    assert [page for page in PAGES if page.is_relative_to(DOCS) and page not in reached] == []
