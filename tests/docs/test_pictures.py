"""The pictures of the docs come from the code and from the figures beside them."""

from __future__ import annotations

import json

import report
from support.doc_pictures import pictures, producers

from cdcfmt_core import default_registry


def test_pictures_of_the_way_are_current() -> None:
    for path, text in pictures().items():
        assert path.read_text(encoding="utf-8") == text, "run make tables"


def test_all_formats_and_transports_are_in_both() -> None:
    formats = {
        format_ for _, _, lines in producers() for line in lines for format_ in line.split(", ")
    }
    assert formats == set(default_registry().codecs())
    for text in pictures().values():
        for name in (*formats, "Kafka", "RabbitMQ", "RocketMQ", "Files", "MySQL", "PostgreSQL"):
            assert name in text


def test_table_and_picture_of_the_benchmark_are_of_one_run() -> None:
    results = json.loads(report.RESULTS.read_text(encoding="utf-8"))
    for name, made in (("md", report.table), ("svg", report.picture)):
        text = (report.DOCS / f"bench.{name}").read_text(encoding="utf-8")
        assert text == made(results), "run tests/benchmarks/report.py"
