"""The two pictures of the way of messages in docs/index.md: for wide and for narrow screens.

``make tables`` writes them. Their producers, formats and transports are those of the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final

from support.doc_transports import SENT, brokers
from support.workspace import ROOT

DATABASES: Final = {
    "TiCDC": "TiDB",
    "Debezium": "MySQL, MariaDB, PostgreSQL, …",
    "Alibaba Canal": "MySQL, MariaDB",
    "CloudCanal": "MySQL",
    "Aliyun DTS": "MySQL, PostgreSQL",
}
"""What each producer reads: docs/supported.md, which says how far."""

OTHER_INPUTS: Final = (
    ("Files", "local, S3, gzip, zstd, …"),
    ("Any DataFrame", "bronze, Pulsar, …"),
)
SHAPES: Final = (
    ("events", "all tables: rows, DDL, watermarks,", "bad messages with the reason"),
    ("changes", "one table with its own typed columns,", "_change_type, _sequence, _absent"),
)
TARGETS: Final = (
    ("Delta, Iceberg", "sync: all tables, one call"),
    ("Any Spark query", "SQL, streams, pipelines"),
    ("Messages again", "any format, any transport"),
)

STYLE: Final = """
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
.name { font-size: 15px; font-weight: 600; fill: #0f172a; }
.note { font-size: 12.5px; fill: #475569; }
.head { font-size: 13px; fill: #64748b; letter-spacing: .06em; }
.title { font-size: 21px; font-weight: 700; fill: #fff; }
.under { font-size: 13px; fill: #bfdbfe; }
.box { fill: #fff; stroke: #cbd5e1; }
.way { fill: #eff6ff; stroke: #93c5fd; }
.core { fill: #1e3a8a; }
.inner { fill: #fff; }
.end { fill: #f0fdf4; stroke: #86efac; }
.line { fill: none; stroke: #64748b; stroke-width: 1.6; }
.tip { fill: #64748b; }
@media (prefers-color-scheme: dark) {
  .name { fill: #e2e8f0; }
  .note { fill: #a8b3c4; }
  .head { fill: #94a3b8; }
  .box { fill: #1c2128; stroke: #3d4654; }
  .way { fill: #14233b; stroke: #2f5a94; }
  .inner { fill: #15275c; }
  .end { fill: #11291b; stroke: #2f6b45; }
  .line { stroke: #94a3b8; }
  .tip { fill: #94a3b8; }
}
""".strip()

LABEL: Final = (
    "Databases, producers and formats, transports, cdcfmt on Spark, and where its rows go"
)


def pictures() -> dict[Path, str]:
    """File and text of both."""
    folder = ROOT / "docs/_static"
    return {folder / "pipeline.svg": wide(), folder / "pipeline-narrow.svg": narrow()}


def producers() -> list[tuple[str, str, list[str]]]:
    """Name, databases, and formats in lines of two."""
    names: dict[str, list[str]] = {product: [] for product in DATABASES}
    for sent in SENT:
        if sent.format not in names[sent.product]:
            names[sent.product].append(sent.format)
    return [
        (name, DATABASES[name], [", ".join(found[i : i + 2]) for i in range(0, len(found), 2)])
        for name, found in names.items()
    ]


def inputs() -> list[tuple[str, str]]:
    return [*((spec.title, "batch and streams") for spec in brokers().values()), *OTHER_INPUTS]


def wide() -> str:
    """Four columns, 1000 units wide."""
    made, y = [_text(125, 24, "head", "databases and producers")], 40
    middles = []
    for name, databases, formats in producers():
        lines = [databases, *formats]
        height = 36 + 17 * len(lines)
        made += _box(10, y, 230, height, "box", name, *lines)
        middles.append(y + height / 2)
        y += height + 12
    total = y - 12
    centre = (40 + total) / 2
    made += [_curve(240, middle, 288, centre) for middle in middles]
    made.append(_text(372, 24, "head", "carried by"))
    for y, (name, note) in _spread(inputs(), 40, total, 62):
        made += _box(294, y, 156, 62, "way", name, note)
        made.append(_curve(450, y + 31, 498, centre))
    made += _core(504, centre - 160, 280)
    made.append(_text(894, 24, "head", "goes to"))
    for y, (name, note) in _spread(TARGETS, centre - 130, centre + 130, 62):
        made.append(_curve(784, centre, 806, y + 31))
        made += _box(812, y, 178, 62, "end", name, note)
    return _svg(1000, total + 10, made)


def narrow() -> str:
    """One below the other, 400 units wide."""
    made, y = [_text(200, 20, "head", "databases and producers")], 32
    for name, databases, formats in producers():
        height = 36 + 17 * (1 + len(formats))
        made += _box(10, y, 380, height, "box", name, databases, *formats)
        y += height + 8
    made += [_arrow(200, y - 6, y + 20), _text(212, y + 12, "head", "carried by", "start")]
    y += 26
    for i, (name, note) in enumerate(inputs()):
        last = i == len(inputs()) - 1 and i % 2 == 0
        made += _box(10 + 194 * (i % 2), y, 380 if last else 186, 56, "way", name, note)
        y += 64 if i % 2 or last else 0
    made.append(_arrow(200, y - 6, y + 20))
    made += _core(60, y + 26, 280)
    y += 26 + 320
    made += [_arrow(200, y + 2, y + 28), _text(212, y + 18, "head", "goes to", "start")]
    y += 34
    for name, note in TARGETS:
        made += _box(60, y, 280, 56, "end", name, note)
        y += 64
    return _svg(400, y, made)


def _core(x: float, y: float, width: float) -> Iterator[str]:
    """cdcfmt itself, 320 high."""
    middle = x + width / 2
    yield f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="320" rx="14" class="core"/>'
    yield _text(middle, y + 34, "title", "cdcfmt")
    yield _text(middle, y + 56, "under", "on Spark 4.1 to 4.3")
    for i, (name, *notes) in enumerate(SHAPES):
        yield from _box(x + 12, y + 74 + 104 * i, width - 24, 92, "inner", name, *notes)
    yield _text(middle, y + 300, "under", "one package per format, from pip")


def _box(
    x: float, y: float, width: float, height: float, kind: str, name: str, *notes: str
) -> Iterator[str]:
    middle = x + width / 2
    yield (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="9" class="{kind}"/>'
    )
    top = y + (height - 20 - 17 * len(notes)) / 2 + 15
    yield _text(middle, top, "name", name)
    for i, note in enumerate(notes):
        yield _text(middle, top + 19 + 17 * i, "note", note)


def _spread(
    things: Sequence[tuple[str, str]], top: float, bottom: float, height: float
) -> Iterator[tuple[float, tuple[str, str]]]:
    gap = (bottom - top - height) / (len(things) - 1)
    for i, thing in enumerate(things):
        yield top + gap * i, thing


def _text(x: float, y: float, kind: str, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    half = (x + to_x) / 2
    path = f"M{x:g} {y:g} C {half:g} {y:g}, {half:g} {to_y:g}, {to_x - 4:g} {to_y:g}"
    return f'<path d="{path}" class="line" marker-end="url(#tip)"/>'


def _arrow(x: float, y: float, to_y: float) -> str:
    return f'<path d="M{x:g} {y:g} V {to_y - 4:g}" class="line" marker-end="url(#tip)"/>'


def _svg(width: float, height: float, made: list[str]) -> str:
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="5" refY="4" markerWidth="6" '
        'markerHeight="6" orient="auto"><path d="M0 0 L8 4 L0 8 z" class="tip"/></marker></defs>'
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"'
    size = f'width="{width:g}" height="{height:g}" role="img" aria-label="{LABEL}">'
    return "\n".join([f"{head} {size}", f"<style>\n{STYLE}\n</style>", tip, *made, "</svg>", ""])


def main() -> None:
    for path, text in pictures().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
