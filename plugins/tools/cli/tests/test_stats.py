"""``cdcfmt stats``: counts, output, and the HTML page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.cli_tools import run, run_json, write_messages
from support.golden_data import load_variant, native_messages

from cdcfmt_cli.json_text import time_text
from cdcfmt_cli.printing import span_text
from cdcfmt_cli.statistics import Timeline
from cdcfmt_core.events import Message

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = "<script>alert(1)</script>&\"'"


@pytest.fixture(scope="module")
def canal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    messages = [g.message for g in load_variant("canal-json", "tidb-extension").messages]
    return write_messages(tmp_path_factory.mktemp("stats") / "canal.jsonl", messages)


def test_counts_are_those_of_the_truth(canal: Path) -> None:
    truth = [t for g in load_variant("canal-json", "tidb-extension").messages for t in g.truth]
    found = run_json("stats", canal, "--json")
    assert found["messages"] == len(load_variant("canal-json", "tidb-extension").messages)
    assert found["kinds"] == Counter(t["kind"] for t in truth)
    assert found["ops"] == Counter(t["op"] for t in truth if t["kind"] == "row")
    rows = Counter((f"{t['schema']}.{t['table']}", t["op"]) for t in truth if t["kind"] == "row")
    counted = {
        (name, op): count
        for name, counts in found["tables"].items()
        for op, count in counts.items()
        if op != "ddl"
    }
    assert counted == rows
    times: Counter[str] = sum(map(Counter, found["timeline"]["columns"]), Counter())
    assert times == Counter(found["ops"]) + Counter(
        {kind: count for kind, count in found["kinds"].items() if kind != "row"}
    )
    values = [g.value or b"" for g in load_variant("canal-json", "tidb-extension").messages]
    assert found["bytes"]["values"] == sum(map(len, values))
    assert found["bytes"]["largest_value"] == max(map(len, values))


def test_watermarks_and_late_events(tmp_path: Path) -> None:
    def open_message(offset: int, partition: int, ts: int, kind: int) -> Message:
        key: dict[str, Any] = {"ts": ts, "t": kind} | (
            {"scm": "d", "tbl": "t"} if kind == 1 else {}
        )
        parts = [json.dumps(key).encode(), b'{"u":{"id":{"t":3,"h":true,"f":11,"v":1}}}']
        framed = [len(part).to_bytes(8, "big") + part for part in parts]
        value = framed[1] if kind == 1 else b"\0" * 8
        version = (1).to_bytes(8, "big")
        return Message(version + framed[0], value, (), "t", partition, offset)

    second = 1000 << 18
    messages = [
        open_message(0, 0, 10 * second, 1),
        open_message(1, 0, 20 * second, 3),
        open_message(2, 0, 15 * second, 1),  # the watermark had promised it
        open_message(0, 1, 12 * second, 3),
        open_message(1, 1, 15 * second, 1),
        open_message(2, 1, 10 * second, 3),  # a watermark that came again
    ]
    path = write_messages(tmp_path / "m.jsonl", messages)
    found = run_json("stats", path, "--json")
    assert found["watermark"]["commit_ts"] == 12 * second
    assert found["watermark"]["behind_newest_ms"] == 3000
    assert found["rows_behind_watermark"] == 1
    text = run("stats", path).stdout
    assert f"{12 * second}" in text
    assert "1 with a commit_ts that a watermark had passed" in text


def test_corrupt_by_reason(tmp_path: Path) -> None:
    messages = list(native_messages("maxwell/maxwell"))
    good = load_variant("canal-json", "default").messages[0].value or b""
    messages += [Message(None, good[:-number], offset=number) for number in (7, 8, 9)]
    found = run_json("stats", write_messages(tmp_path / "m.jsonl", messages), "--json")
    reasons = [(item["count"], item["reason"]) for item in found["corrupt"]]
    assert reasons[0][0] == 25
    assert "no installed format recognises" in reasons[0][1]
    assert reasons[1][0] == 3
    assert "offset 7" in found["corrupt"][1]["first"]


def test_digits_in_names_are_not_masked(tmp_path: Path) -> None:
    row = {"isDdl": False, "type": "INSERT", "database": "d", "table": "t", "es": 1, "ts": 1,
           "pkNames": [], "mysqlType": {}, "sqlType": {}, "data": [{"id": "1"}]}  # fmt: skip
    wires = [row | {"mysqlType": {"c2024": "int"}, "data": [{"c2024": "x" * n}]} for n in (1, 2)]
    messages = [Message(None, json.dumps(wire).encode()) for wire in wires]
    found = run_json("stats", write_messages(tmp_path / "m.jsonl", messages), "--json")
    ((reason, count),) = [(item["reason"], item["count"]) for item in found["corrupt"]]
    assert count == 2
    assert "data[#].c2024" in reason


def test_last_changes_and_partitions(tmp_path: Path) -> None:
    messages = list(native_messages("canal/canal_flat_hash"))
    path = write_messages(tmp_path / "m.jsonl", messages)
    found = run_json("stats", path, "--json")
    newest: dict[str, int] = {}
    of_partition: dict[int | None, tuple[int, int | None]] = {}
    for message in messages:
        wire = json.loads(message.value or b"")
        name = f"{wire['database']}.{wire['table']}".rstrip(".")
        newest[name] = max(newest.get(name, 0), wire["es"])
        last, _ = of_partition.get(message.partition, (0, None))
        of_partition[message.partition] = max(last, wire["es"]), message.offset
    assert found["last_changes"] == {n: time_text(ms * 1000) for n, ms in newest.items()}
    assert len(of_partition) > 1
    behind = max(newest.values())
    for line in found["partitions"]:
        last, offset = of_partition[line["partition"]]
        assert (line["last_time"], line["last_offset"]) == (time_text(last * 1000), offset)
        assert line["behind_newest_ms"] == behind - last
        assert line["lag_ms"] > line["behind_newest_ms"]
    assert sum(line["messages"] for line in found["partitions"]) == len(messages)
    text = run("stats", path).stdout
    assert all(f"canal_flat_hash[{partition}]" in text for partition in of_partition)
    assert "last change" in text


def test_words_are_not_broken_on_a_narrow_terminal(canal: Path, tmp_path: Path) -> None:
    bad = write_messages(tmp_path / "bad.jsonl", native_messages("maxwell/maxwell"))
    for command in (["stats", canal], ["sniff", canal], ["schema", canal], ["formats"],
                    ["schema", canal, "--table", "golden.upd_cols"], ["validate", bad, "-n", 2],
                    ["stats", bad], ["validate", canal]):  # fmt: skip
        wide, narrow = (
            set(re.sub("[─▁▂▃▄▅▆▇█]", " ", run(*command, width=width).stdout).split())
            for width in (400, 40)
        )
        assert len(narrow & wide) > 10
        assert not {word for word in narrow - wide if word.isalpha() and len(word) > 2}, command


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_the_text_fits_the_terminal(canal: Path, width: int) -> None:
    text = run("stats", canal, width=width).stdout
    bars = [line for line in text.splitlines() if set("▁▂▃▄▅▆▇█") & set(line)]
    assert [line.split()[0] for line in bars] == ["insert", "update", "delete", "ddl"]
    assert len({len(line.rstrip()) for line in bars}) == 1
    assert max(len(line.rstrip()) for line in bars) <= width
    # Every event is seen, however small its share.
    assert all(set("▁▂▃▄▅▆▇█") & set(line) for line in bars)


def test_a_timeline_of_any_range() -> None:
    times = Timeline()
    for second in range(100_000):
        times.add(second * 1_000_000, "a" if second % 2 else "b")
    times.add(10**17, "c")
    start, width, columns = times.columns(50)
    assert len(columns) <= 50
    assert start == 0
    assert start + width * len(columns) > 10**17
    assert sum(columns, Counter()) == {"a": 50_000, "b": 50_000, "c": 1}
    assert [span_text(n) for n in (0, 1_500, 2_500_000, 90_000_000, 2 * 86_400_000_000)] == [
        "0 ms", "2 ms", "2.5 s", "1.5 min", "2.0 d",
    ]  # fmt: skip


# --- The page -------------------------------------------------------------------------


class Page(HTMLParser):
    """The page's structure: elements are closed, and there are no external resources."""

    VOID = frozenset({"meta", "rect", "line", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.classes: Counter[str] = Counter()
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags[tag] += 1
        self.classes.update((given.get("class") or "").split())
        assert not {"src", "href", "onload"} & given.keys()
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.handle_endtag(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def page(canal: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    now = 1795215106000
    hostile = {
        "isDdl": False, "type": "INSERT", "database": "d", "table": HOSTILE, "es": now, "ts": now,
        "pkNames": ["id"], "mysqlType": {"id": "int"}, "sqlType": {"id": 4}, "data": [{"id": "1"}],
    }  # fmt: skip
    bad = hostile | {"data": HOSTILE}
    messages = [Message(None, json.dumps(wire).encode(), offset=1) for wire in (hostile, bad)]
    extra = write_messages(folder / "extra.jsonl", [attrs.evolve(m, topic="x") for m in messages])
    result = run("stats", canal, extra, "--html", folder / "page.html")
    assert result.exit_code == 0
    assert result.stdout == ""
    return folder / "page.html"


def test_page_is_self_contained_and_escapes_text(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    parsed = Page(text)
    assert "http" not in re.sub(r'"[^"]*"', "", text)
    assert parsed.tags["script"] == 1  # the numbers, which are not code
    assert '<script type="application/json" id="data">' in text
    assert HOSTILE in "".join(parsed.texts)
    data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    numbers = json.loads(data[1])
    assert f"d.{HOSTILE}" in numbers["tables"]
    assert numbers["kinds"]["corrupt"] == 1
    # A row and a bar for each table, a column of the chart for each slot with events.
    assert parsed.classes["bar"] == len(numbers["tables"]) + 1
    assert parsed.classes["tile"] >= 6
    assert parsed.classes["column"] > 1
    assert parsed.texts.count("last change") == 1
    assert text.count("<h2>Partitions</h2>") == 1
    assert len(text) < 200_000


PROBE = """
<script>
const rect = e => e.getBoundingClientRect();
const bars = [...document.querySelectorAll('svg rect:not(.hover)')];
document.body.dataset.probe = JSON.stringify({
  overflow: document.documentElement.scrollWidth > document.documentElement.clientWidth,
  tiles: [...document.querySelectorAll('.tile')].filter(e => rect(e).width > 100).length,
  bars: bars.filter(e => rect(e).height > 0 && rect(e).width > 0).length,
  all: bars.length,
  colours: new Set(bars.map(e => getComputedStyle(e).fill)).size,
  scripts: window.hacked === undefined,
  rows: document.querySelectorAll('#tables tbody tr').length,
  outside: bars.filter(e => rect(e).bottom > rect(document.querySelector('svg')).bottom).length,
});
</script>
"""


@pytest.mark.skipif(CHROMIUM is None, reason="there is no headless browser here")
@pytest.mark.parametrize("width", [500, 1280])
def test_the_page_in_a_browser(page: Path, tmp_path: Path, width: int) -> None:
    probed = tmp_path / "probed.html"
    probed.write_text(page.read_text(encoding="utf-8").replace("</body>", PROBE + "</body>"))
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}",
            f"--window-size={width},900", "--dump-dom", probed.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )  # fmt: skip
    match = re.search(r'data-probe="([^"]*)"', done.stdout)
    assert match is not None, done.stderr
    probe = json.loads(match[1].replace("&quot;", '"'))
    assert not probe["overflow"]
    assert probe["tiles"] >= 6
    assert probe["bars"] == probe["all"] > 10
    assert probe["colours"] >= 4
    assert probe["outside"] == 0
    assert probe["rows"] > 10


def test_unwritable_page(canal: Path, tmp_path: Path) -> None:
    result = run("stats", canal, "--html", tmp_path / "no" / "page.html")
    assert result.exit_code == 3
    assert "cannot be written" in result.stderr
