"""Links between the pages, and their tables."""

from __future__ import annotations

import re
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


TABLES = [*PAGES, ROOT / "frontend" / "client" / "README.md"]


@pytest.mark.parametrize("page", TABLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_rows_of_a_table_have_as_many_cells_as_its_head(page: Path) -> None:
    # A renderer drops the cells beyond the head's, such as after a pipe in code.
    tables = re.findall(r"(?:^\|.*\n)+", page.read_text("utf-8"), re.MULTILINE)
    for table in tables:
        cells = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(cells) == 1, table.splitlines()[0]


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
