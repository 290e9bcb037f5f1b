"""Bars and lines as SVG, without a library: text in, text out.

As wide as a phone can show in a size to read, in colours for the light and the dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from textwrap import wrap

import attrs

BLUE, PALE, GREY, ORANGE = "#1c7ed6", "#74c0fc", "#adb5bd", "#f08c00"
_STYLE = """
.ink { fill: #212529; } .faint { fill: #5c636a; } .rule { fill: #dee2e6; }
@media (prefers-color-scheme: dark) {
  .ink { fill: #e2e8f0; } .faint { fill: #a8b3c4; } .rule { fill: #495057; }
}
""".strip()
_INK, _FAINT, _RULE = "ink", "faint", "rule"
_WIDTH, _MARGIN, _LABELS = 480, 8, 236
_BAR, _GAP = 17, 6


@attrs.frozen
class Bar:
    """One of a group; ``mark`` is where a line across it stands."""

    group: str
    label: str
    value: float
    colour: str
    mark: float | None = None


class Drawing:
    """Grows downward; all measures in pixels."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = []
        self._y = 16

    def heading(self, text: str, below: str) -> None:
        self._y += 8
        for line in wrap(text, 44):
            self._y += 22
            self._text(_MARGIN, self._y, line, size=17, weight=600)
        for line in wrap(below, 60):
            self._y += 19
            self._text(_MARGIN, self._y, line, kind=_FAINT)
        self._y += 18

    def bars(self, bars: Sequence[Bar], form: str) -> None:
        """Groups of bars from left to right, with their values."""
        most = max([bar.value for bar in bars] + [bar.mark or 0 for bar in bars], default=1)
        scale = (_WIDTH - _MARGIN - _LABELS - 60) / most
        for group, some in groupby(bars, key=lambda bar: bar.group):
            self._text(_MARGIN, self._y + 13, group, weight=600)
            self._y += 22
            for bar in some:
                middle = self._y + _BAR - 4
                self._text(_LABELS - 8, middle, bar.label, kind=_FAINT, anchor="end", size=13)
                width = max(bar.value * scale, 1)
                self._rectangle(_LABELS, self._y, width, _BAR, f'fill="{bar.colour}"')
                after = max(width, (bar.mark or 0) * scale) + 6
                self._text(_LABELS + after, middle, form.format(bar.value))
                if bar.mark is not None:
                    at = _LABELS + bar.mark * scale
                    self._rectangle(at - 1, self._y - 2, 2, _BAR + 4, f'class="{_INK}"')
                self._y += _BAR + _GAP
            self._y += 8

    def lines(self, charts: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> None:
        """Charts below each other, with one scale: of each its title and points."""
        height, width = 110, _WIDTH - 2 * _MARGIN
        most = max((value for _, points in charts for _, value in points), default=1)
        for title, points in charts:
            top, bottom = self._y + 46, self._y + 46 + height
            self._text(_MARGIN, self._y + 12, title, weight=600)
            self._rectangle(_MARGIN, bottom, width, 1, f'class="{_RULE}"')
            step = width / len(points)
            spots = [
                (_MARGIN + step * (place + 0.5), bottom - value / most * height)
                for place, (_, value) in enumerate(points)
            ]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
            self._parts.append(
                f'<polyline points="{path}" fill="none" stroke="{BLUE}" stroke-width="2"/>'
            )
            for (x, y), (name, value) in zip(spots, points, strict=True):
                self._parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{BLUE}"/>')
                self._text(x, max(y - 9, top - 8), f"{value:.1f}", anchor="middle")
                self._text(x, bottom + 18, name, kind=_FAINT, anchor="middle", size=12)
            self._y = bottom + 38

    def text(self) -> str:
        """The whole document."""
        height = self._y + 8
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" role="img" '
            'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">'
        )
        title = f"<title>{escape(self._title)}</title>"
        style = f"<style>\n{_STYLE}\n</style>"
        return "\n".join([head, title, style, *self._parts, "</svg>", ""])

    def _rectangle(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """``colour`` is the attribute for it: of the drawing, or of the style."""
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" {colour}/>'
        )

    def _text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: int = 14,
        weight: int = 400,
        kind: str = _INK,
        anchor: str = "start",
    ) -> None:
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" '
            f'class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'
        )
