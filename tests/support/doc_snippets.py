"""Code blocks of the docs, for the tests that run them."""

from __future__ import annotations

import re
import textwrap

import attrs

from support.workspace import ROOT

_FENCE = re.compile(
    r"(?P<mark>^[ ]*<!-- run(?:: (?P<needs>\w+))? -->\n)?"
    r"^[ ]*```(?P<language>\w*)\n(?P<code>.*?)^[ ]*```$"
    r"(?:\n+^```text\n(?P<prints>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


@attrs.frozen
class Snippet:
    """A code block; ``runs`` tells whether it stands under ``<!-- run -->``.

    ``needs`` is the fixture of ``<!-- run: fixture -->``, such as kafka; else empty.
    ``prints`` is the block of text below it: what it prints.
    """

    file: str
    line: int
    language: str
    code: str
    runs: bool
    needs: str
    prints: str | None

    @property
    def id(self) -> str:
        return f"{self.file}:{self.line}"


def snippets(file: str) -> list[Snippet]:
    """Every code block of a file, by its path in the repository."""
    text = (ROOT / file).read_text(encoding="utf-8")
    return [
        Snippet(
            file,
            text.count("\n", 0, match.start("code")) + 1,
            match["language"],
            textwrap.dedent(match["code"]),
            match["mark"] is not None,
            match["needs"] or "",
            match["prints"],
        )
        for match in _FENCE.finditer(text)
    ]


def files_in_snippets(file: str) -> dict[str, str]:
    """Blocks whose first line is a comment with a file name: the file's name and text."""
    named: dict[str, str] = {}
    for snippet in snippets(file):
        first, _, rest = snippet.code.partition("\n")
        if re.fullmatch(r"# [\w./-]+\.(py|toml)", first):
            named[first[2:]] = rest
    return named
