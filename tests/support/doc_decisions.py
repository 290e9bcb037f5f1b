"""The pages of ``docs/decisions``, for the table of its index."""

from __future__ import annotations

import re
from collections.abc import Iterator

from support.workspace import ROOT

PAGES = ROOT / "docs/decisions"
_PAGE = re.compile(
    r"---\nnosearch: true\n---\n\n"
    r"# (?P<number>\d+)\. (?P<title>.+)\n\n"
    r"(?P<date>\d{4}-\d\d-\d\d), (?P<status>accepted|superseded by \[\d+\]\([\w.-]+\))\n\n"
    r"\*\*Context\.\*\* .+\n\n\*\*Decision\.\*\* .+\n\n\*\*Consequence\.\*\* .+\n",
    re.DOTALL,
)


def decisions() -> Iterator[tuple[str, str, str, str]]:
    """Number, linked title, date and status of each decision.

    :raises ValueError: if a page has another form, or a number that is not the next one.
    """
    for number, page in enumerate(sorted(PAGES.glob("[0-9]*.md")), 1):
        found = _PAGE.fullmatch(page.read_text("utf-8"))
        if found is None or int(found["number"]) != number or int(page.name[:3]) != number:
            raise ValueError(f"{page.name}: not decision {number}, or of another form than 001")
        yield found["number"], f"[{found['title']}]({page.name})", found["date"], found["status"]
