"""The table and the picture of a run of ``bench.py``: ``docs/bench.md`` and ``docs/bench.svg``.

``python tests/benchmarks/report.py`` writes them again from ``results.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from drawing import BLUE, GREY, ORANGE, PALE, Bar, Drawing
from samples import SAMPLES
from spark import JVM, LINES

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
RESULTS = HERE / "results.json"

Record = dict[str, Any]


def save(results: Record) -> None:
    """The results so far: an interrupted run is not lost."""
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def write(results: Record) -> None:
    """The results, the table and the picture."""
    save(results)
    (DOCS / "bench.md").write_text(table(results), encoding="utf-8")
    (DOCS / "bench.svg").write_text(picture(results), encoding="utf-8")


def rows_of(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def table(results: Record) -> str:
    """All figures, as Markdown."""
    about = results["about"]
    lines = [
        "# Figures of the benchmark",
        "",
        "Written by `make bench`; [performance.md](performance.md) says what they mean. "
        f"{about['python']}, {about['cpu']}, {about['cpus']} CPUs; medians of "
        f"{about['rounds']} rounds; load of the machine when it began: {about['load']}.",
        "",
        "![Figures of the benchmark](bench.svg)",
        "",
        "## Without Spark",
        "",
        "From messages in memory to Arrow batches, CPU time of one core. TiCDC's own decoders, in "
        "Go, were measured elsewhere, on another machine. Messages of "
        + " and ".join(sample.name for sample in SAMPLES if sample.written)
        + " are Simple's rows, written by our encoder and read back.",
        "",
        *rows_of(
            ("messages", "", "path", "µs a row", "rows/s", "MB/s", "of TiCDC's Go"),
            (
                (
                    each["sample"],
                    each["case"],
                    each["path"],
                    f"{each['us']:.1f}",
                    f"{1e6 / each['us']:,.0f}",
                    f"{each['bytes'] / each['us']:.0f}",
                    f"{1e6 / each['us'] / each['go']:.1f} x" if each["go"] else "",
                )
                for each in results["decoding"]
            ),
        ),
        *(f"- {name}: {each:.1f} µs a message" for name, each in results["lines"].items()),
        *([""] if results["lines"] else []),
    ]
    for cores in sorted({each["cores"] for each in results["spark"]}):
        lines += _spark_table(results, cores)
    lines += _registry_tables(results["registry"]) if "registry" in results else []
    lines += [
        "## Growth",
        "",
        "Canal-JSON, changes of one table by the kernel, both images, CPU time. Memory is the peak "
        "of the process.",
        "",
        *rows_of(
            (
                *("what grows", "to", "bytes a message", "ns a byte", "µs a message"),
                *("by kernel", "memory"),
            ),
            (
                (
                    each["what"],
                    each["step"],
                    f"{each['bytes']:,.0f}",
                    f"{each['ns']:.1f}",
                    f"{each['ns'] * each['bytes'] / 1000:.1f}",
                    f"{each['by_kernel']:.1%}",
                    f"{each['memory']:.0f} MB" if "memory" in each else "",
                )
                for each in results["growth"]
            ),
        ),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _spark_table(results: Record, cores: int) -> list[str]:
    lines = [
        f"## On Spark, {'one core' if cores == 1 else f'{cores} cores'}",
        "",
        "A file into `noop`. CPU is that of all processes; *net* leaves out what the same query "
        "takes for a few messages. Memory is the largest Python worker's peak.",
        "",
    ]
    order = [sample.name for sample in SAMPLES]
    of_cores = sorted(
        (each for each in results["spark"] if each["cores"] == cores),
        key=lambda each: order.index(each["sample"]),
    )
    rows = []
    for each in of_cores:
        peer = min(
            (other for other in of_cores if other["sample"] == each["sample"]),
            key=lambda other: (other["case"] not in JVM, other["cpu"]),
        )
        beside = ("", "")
        if peer["case"] in JVM:
            beside = (
                f"{rate(each) / rate(peer):.2f} x",
                f"{net(peer) / net(each):.2f} x",
            )
        rows.append(
            (
                each["sample"],
                each["case"],
                f"{each['changes']:,}",
                f"{each['rounds']}",
                f"{rate(each):,.0f}",
                f"{each['bytes'] / each['seconds'] / 1e6:.0f}",
                f"{each['cpu'] / each['changes'] * 1e6:.1f}",
                f"{net(each):.1f}",
                *beside,
                f"{each['memory']:.0f} MB" if each["case"] not in (*JVM, LINES) else "",
            )
        )
    header = (
        *("messages", "", "row changes", "rounds", "rows/s", "MB/s", "CPU, µs a row", "net"),
        *("rate, of the JVM's", "net CPU, of the JVM's", "memory"),
    )
    return [
        *lines,
        "The JVM's is the best of its queries over the same file: a rate of 2 x reads twice as "
        "many rows in a second, a net CPU of 2 x takes half as much for each. All read the same "
        "row changes; an update counts as one.",
        "",
        *rows_of(header, rows),
    ]


def _registry_tables(results: Record) -> list[str]:
    lines = [
        "## Avro with a schema registry",
        "",
        "Debezium's envelopes in Avro as TiCDC writes them, with Confluent's framing, written by "
        f"fastavro from the same rows. The least CPU time of {results['rounds']} rounds; all "
        f"contenders run in turn; load of the machine when it began: {results['load']}.",
        "",
        "Without Spark, one table. fastavro reads a message with the schema of its id; the "
        "conversion makes dates, times and typed values of both images:",
        "",
        *rows_of(
            ("", "µs a message", "messages/s", "of fastavro's reader and conversion"),
            (
                (
                    each["case"],
                    f"{each['us']:.1f}",
                    f"{1e6 / each['us']:,.0f}",
                    f"{each['of']:.1f} x",
                )
                for each in results["without_spark"]
            ),
        ),
        "Events with images as JSON, of tables with ids of their own, which were read before:",
        "",
        *rows_of(
            ("", "µs a message", "of one table"),
            (
                (each["case"], f"{each['us']:.2f}", f"{each['of']:.2f} x")
                for each in results["many_tables"]
            ),
        ),
    ]
    if results["on_spark"]:
        lines += [
            "On Spark, whole messages in JSON lines into `noop`; CPU is that of all processes. "
            "`from_avro` gets the one writer schema:",
            "",
            *rows_of(
                (
                    *("", "messages", "cores", "messages/s", "CPU, µs a message"),
                    *("rate, of from_avro's", "CPU", "net CPU"),
                ),
                (
                    (
                        *(each["case"], f"{each['messages']:,}", f"{each['cores']}"),
                        *(f"{each['rate']:,.0f}", f"{each['us']:.1f}"),
                        *(f"{each[of]:.2f} x" for of in ("of_rate", "of", "of_net")),
                    )
                    for each in results["on_spark"]
                ),
            ),
        ]
    return lines


def rate(record: Record) -> float:
    """Row changes a second."""
    changes: float = record["changes"] / record["seconds"]
    return changes


def net(record: Record) -> float:
    """CPU microseconds of a row, without the fixed cost of the query."""
    micros: float = max(record["cpu"] - record["once"], 1e-9) / record["changes"] * 1e6
    return micros


_COLOURS = {
    ("changes", "by kernel"): BLUE,
    ("changes", "reference"): GREY,
    ("events, images as JSON", "by kernel"): PALE,
    ("events, images as JSON", "reference"): "#ced4da",
}


def picture(results: Record) -> str:
    """The most important of them, as SVG."""
    drawing = Drawing("Row changes, decoded")
    drawing.heading(
        "Without Spark: thousand row changes a second on one core",
        "messages in memory to Arrow batches; the mark is TiCDC's own decoder in Go, elsewhere",
    )
    bars = []
    for each in results["decoding"]:
        colour = _COLOURS.get((each["case"], each["path"]))
        if colour is not None:
            go = each["go"] / 1000 if each["go"] and each["case"] == "changes" else None
            label = f"{each['case'].removesuffix(', images as JSON')}, {each['path']}"
            bars.append(Bar(each["sample"], label, 1000 / each["us"], colour, go))
    drawing.bars(bars, "{:.0f}")
    if bars := _on_spark(results["spark"]):
        drawing.heading(
            "On Spark: CPU of all processes, microseconds a row change",
            "a file into noop, without what a query costs once; less is better",
        )
        drawing.bars(bars, "{:.1f}")
    if "registry" in results:
        drawing.heading(
            "Avro with a schema registry: CPU, microseconds a message",
            "Debezium's envelopes, messages in memory; fastavro's end as Python objects; less is "
            "better",
        )
        drawing.bars(_of_registry(results["registry"]), "{:.1f}")
    drawing.heading(
        "Growth: nanoseconds a byte of Canal-JSON",
        "changes of one table by the kernel, both images",
    )
    whats = list(dict.fromkeys(each["what"] for each in results["growth"]))
    drawing.lines(
        [
            (
                what,
                [(each["step"], each["ns"]) for each in results["growth"] if each["what"] == what],
            )
            for what in whats
        ]
    )
    return drawing.text()


def _on_spark(records: Sequence[Record]) -> list[Bar]:
    cores = max((each["cores"] for each in records), default=0)
    with_peers = {each["sample"] for each in records if each["case"] in JVM}
    bars = []
    for each in records:
        if each["cores"] != cores or each["sample"] not in with_peers:
            continue
        if each["case"] in JVM or each["case"] in ("changes", "changes, images=after", LINES):
            colour = ORANGE if each["case"] in JVM else GREY if each["case"] == LINES else BLUE
            label = each["case"] if colour != BLUE else f"cdcfmt, {each['case']}"
            bars.append(Bar(each["sample"], label, net(each), colour))
    return bars


def _of_registry(results: Record) -> list[Bar]:
    groups = (("one table", "without_spark"), ("events of many tables", "many_tables"))
    return [
        Bar(group, each["case"], each["us"], GREY if "fastavro" in each["case"] else BLUE)
        for group, part in groups
        for each in results[part]
    ]


def main() -> None:
    write(json.loads(RESULTS.read_text("utf-8")))


if __name__ == "__main__":
    main()
