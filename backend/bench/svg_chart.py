"""An SVG bar chart of the microseconds per delta of each measured server."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from bench.peers import FLOOR, OURS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.report import Report

_WIDTH: Final = 860
_LEFT: Final = 300
_BAR: Final = 18
_GAP: Final = 10
_COLORS: Final = {"ours": "#2563eb", "floor": "#64748b", "peer": "#d97706"}


def picture(report: Report) -> str:
    """Return an SVG with a labelled bar for each number."""
    lines = list(_bars(report))
    height = 80 + len(report.samples) * (_BAR + _GAP)
    body = "\n".join(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="system-ui, sans-serif" font-size="13" role="img">\n'
        f"<title>Microseconds per delta, less is better</title>\n"
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>\n'
        f'<text x="16" y="28" font-size="16" font-weight="600">Microseconds per delta, '
        f"less is better (median of {report.rounds}, lowest to highest as a line)</text>\n"
        f"{body}\n</svg>\n"
    )


def _bars(report: Report) -> Iterator[str]:
    spreads = {name: report.per_delta(name) for name in report.samples}
    most = max((found.median for found in spreads.values()), default=1.0)
    scale = (_WIDTH - _LEFT - 110) / (most * 1.15)
    for number, (name, found) in enumerate(spreads.items()):
        top = 52 + number * (_BAR + _GAP)
        middle = top + _BAR / 2
        kind = "floor" if name == FLOOR else "ours" if name in OURS else "peer"
        width = max(found.median * scale, 1)
        low = _LEFT + found.lowest * scale
        high = min(_LEFT + found.highest * scale, _WIDTH - 90)
        ratio = report.ratio(name, FLOOR)
        beside = f"{found.median * 1e6:.1f}" + (f" ({ratio.median:.1f} x)" if ratio else "")
        yield (
            f'<text x="{_LEFT - 8}" y="{middle + 4:.1f}" text-anchor="end">'
            f"{escape(report.titles[name])}</text>"
            f'<rect x="{_LEFT}" y="{top}" width="{width:.1f}" height="{_BAR}" rx="2" '
            f'fill="{_COLORS[kind]}"/>'
            f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}" '
            'stroke="#0f172a" stroke-width="1.5"/>'
            f'<text x="{max(high, _LEFT + width) + 8:.1f}" y="{middle + 4:.1f}">{beside}</text>'
        )
