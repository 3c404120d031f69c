"""The drawing of an approval's life beside the table it is drawn from."""

from __future__ import annotations

from sluicegate.core.approvals import TRANSITIONS
from tests.docs.markdown import DOCS, one_fence, rows

PAGE = DOCS / "how-it-works.md"


def _drawing() -> str:
    """The table of moves as a mermaid diagram: states in the table's order."""
    order = list(TRANSITIONS)
    lines = ["stateDiagram-v2", f"    [*] --> {order[0]}"]
    for state, targets in TRANSITIONS.items():
        lines += [f"    {state} --> {target}" for target in sorted(targets, key=order.index)]
        if not targets:
            lines.append(f"    {state} --> [*]")
    return "\n".join(lines) + "\n"


def test_the_diagram_shows_exactly_the_transitions_of_the_table() -> None:
    drawn = one_fence(PAGE.read_text("utf-8"), "mermaid")

    assert drawn == _drawing(), f"the drawing should be:\n{_drawing()}"


def test_every_state_is_explained_once() -> None:
    explained = [row[0].strip("`") for row in rows(PAGE.read_text("utf-8"))]

    assert sorted(name for name in explained if name in TRANSITIONS) == sorted(TRANSITIONS)
