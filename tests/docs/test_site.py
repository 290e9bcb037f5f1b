"""The built site: its links, and what its search finds."""

from __future__ import annotations

import json
import posixpath
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from support.workspace import ROOT

pytestmark = pytest.mark.slow

Search = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", ROOT / "docs", folder]
    subprocess.run(command, check=True)
    return folder


# --- Links -------------------------------------------------------------------------------


class Page(HTMLParser):
    """The ids of a page, and the targets of its links and pictures, those of raw HTML too."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = {""}
        self.targets: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and (name == "id" or (tag, name) == ("a", "name")):
                self.ids.add(value)
            elif value and name in ("href", "src", "srcset"):
                self.targets.add(value)


def test_links_of_the_site_lead_somewhere(site: Path) -> None:
    pages = {
        file.relative_to(site).as_posix(): Page(file.read_text(encoding="utf-8"))
        for file in site.rglob("*.html")
    }
    assert len(pages) > 100
    assert [*_dead_links(site, pages)] == []


def _dead_links(site: Path, pages: dict[str, Page]) -> Iterator[str]:
    for name, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = unquote(parts.path)
            file = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            other = file if path else name
            if not (site / other).is_file() or (
                other in pages and unquote(parts.fragment) not in pages[other].ids
            ):
                yield f"{name}: {target}"


# --- Search ------------------------------------------------------------------------------

BROWSER = """
var window = globalThis;
var document = {
  getElementById: () => null, addEventListener: () => {}, readyState: "loading",
};
var SPHINX_HIGHLIGHT_ENABLED = false;
var _ = (text) => text;
var _ready = () => {};
"""
"""What the script of the search takes from a browser before it shows results."""

# In the order of the page: the site's own script, at the end of language_data.js, changes Search.
SCRIPTS = ("searchtools.js", "language_data.js")


@pytest.fixture(scope="module")
def search(site: Path) -> Iterator[Search]:
    """The pages that the site's own script finds in its own index, best first."""
    # Environments of other Pythons, which leave this test out, have no tools of the docs.
    with pytest.importorskip("py_mini_racer").MiniRacer() as engine:
        engine.eval(BROWSER)
        for script in (*(site / "_static" / name for name in SCRIPTS), site / "searchindex.js"):
            engine.eval(script.read_text(encoding="utf-8"))

        def found(words: str) -> list[str]:
            # The last result is shown first.
            call = f"Search._performSearch(...Search._parseQuery({json.dumps(words)}))"
            results = json.loads(str(engine.eval(f"JSON.stringify({call}.reverse())")))
            return list(dict.fromkeys(page for page, *_ in results))

        yield found


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("merge", "sync"),
        ("merge", "merge-by-hand"),
        ("upsert", "sync"),
        ("postgres", "supported"),
        ("registry", "supported"),
        ("outbox", "supported"),
        ("cloudevents", "supported"),
        ("striim", "supported"),
        ("otter", "supported"),
        ("registry", "registries"),
        ("schema registry", "registries"),
        ("avro", "registries"),
        ("decimal", "types"),
        ("timezone", "types"),
        ("time zone", "types"),
        ("tombstone", "merge-by-hand"),
        ("dead letter", "operations"),
        ("dead letters", "sync"),
        ("exactly once", "sync"),
        ("_corrupt_record", "bad-input"),
        ("offsets", "kafka"),
        ("lag", "monitoring"),
        ("delete", "spark"),
        ("schema evolution", "sync-schemas"),
        ("schema evolution", "operations"),
        ("databricks", "deployment"),
        ("docker", "deployment"),
        ("airflow", "deployment"),
        ("unsigned", "types"),
        ("emoji", "types"),
        ("NULL", "concepts"),
        ("install", "install"),
        ("Timed out while waiting for the Python worker to connect back", "troubleshooting"),
        ("DATA_SOURCE_NOT_FOUND", "troubleshooting"),
        ("on call", "cli"),
        ("runbook", "cli"),
        ("alert", "monitoring"),
        ("skip message", "operations"),
        ("replay", "sync"),
        ("reprocess", "sync"),
        ("custom format", "write-a-format"),
        ("convert canal to debezium", "cli"),
        ("magic byte", "registries"),
        ("toast", "concepts"),
        ("wal lsn", "order"),
        ("filter rows", "cli"),
        ("offline", "install"),
        ("structured streaming", "streaming"),
        ("availableNow", "streaming"),
        ("drop column", "sync-schemas"),
        ("apple silicon", "supported"),
        ("arm", "supported"),
        ("cdf", "sync"),
        ("canal", "formats/canal-json"),
        ("debezium", "formats/debezium"),
        ("last messages of a topic", "cli"),
        ("tail a topic", "cli"),
        ("where", "cli"),
        ("filter", "cli"),
        ("what happened to order 42", "cli"),
        ("license", "index"),
        ("changelog", "index"),
        ("time travel", "sync"),
        ("read only the last hour", "spark"),
        ("time range", "spark"),
        ("glue catalog", "sync"),
        ("column order changed", "troubleshooting"),
        ("versionAsOf", "sync"),
        ("scd type 2", "sync"),
        ("optimize", "sync"),
        ("soft delete", "sync"),
        ("mock", "cli"),
        ("test data", "cli"),
        ("tutorial", "quickstart"),
        ("prerequisites", "install"),
        ("jupyter", "install"),
        ("upgrade", "operations"),
        ("throttle", "operations"),
        ("dead letter queue", "operations"),
        ("a queue for dead letters", "operations"),
        ("error handling", "bad-input"),
        ("logging", "bad-input"),
        ("consumer group", "kafka"),
        ("auto.offset.reset", "kafka"),
        ("mTLS", "security"),
        ("azure", "deployment"),
        ("unity catalog", "sync"),
        ("snowflake", "supported"),
        ("debezium postgres", "formats/debezium"),
        ("claim check", "formats/canal-json"),
        ("uuid", "types"),
        ("out of order", "order"),
        ("rename table", "sync-schemas"),
        ("limitations", "comparison"),
        ("crash", "reliability"),
        ("PII", "rewriting"),
        ("mask personal data", "sync"),
        ("exclude columns", "sync"),
        ("health check", "monitoring"),
        ("custom transport", "write-a-transport"),
        ("conformance", "conformance-kit"),
        ("write to kafka", "writing"),
        ("foreachBatch", "merge-by-hand"),
        # Words that no page has do not hide those that have the others.
        ("backfill with frobnicators", "sync"),
    ],
)
def test_the_right_page_is_among_the_first_three(search: Search, words: str, page: str) -> None:
    assert page in search(words)[:3]


@pytest.mark.parametrize(
    "words", ["postgres", "avro", "schema registry", "databricks", "iceberg", "oracle", "MySQL"]
)
def test_what_is_supported_comes_first(search: Search, words: str) -> None:
    assert search(words)[0] == "supported"


def test_a_second_build_into_the_same_folder_finds_the_same(tmp_path: Path) -> None:
    docs, site = tmp_path / "docs", tmp_path / "site"
    shutil.copytree(ROOT / "docs/_static", docs / "_static")
    for name in ("conf.py", "monitoring.md", "order.md"):
        shutil.copy(ROOT / "docs" / name, docs / name)
    (docs / "index.md").write_text("# Pages\n\n```{toctree}\nmonitoring\norder\n```\n")
    indexes = []
    for _ in range(2):
        # Links to the other pages are warnings.
        command = [sys.executable, "-m", "sphinx", "-Q", docs, site]
        subprocess.run(command, check=True)
        indexes.append((site / "searchindex.js").read_text(encoding="utf-8"))
        with (docs / "order.md").open("a", encoding="utf-8") as page:
            page.write("\n")
    assert '"consumer lag":' in indexes[0]
    assert indexes[1] == indexes[0]


def test_pages_of_tables_come_last(search: Search) -> None:
    found = search("option")
    tables = {"options", "sync-options", "writing-options"}
    assert set(found[:20]).isdisjoint(tables)
    assert tables <= set(found)
    assert not any(page.startswith("decisions/") for page in found)
