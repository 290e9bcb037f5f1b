"""The site that ``make docs`` makes of these pages: Sphinx, MyST and Furo."""

import re
from importlib import metadata
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

project = "cdcfmt"
project_copyright = "the cdcfmt authors, Apache-2.0"
release = metadata.version("cdcfmt-core")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
autodoc_class_signature = "separated"
autodoc_typehints = "none"
exclude_patterns = ["_build", "**/.*"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = f"cdcfmt {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "_static/scorer.js")
html_show_sphinx = False
html_use_index = False
html_copy_source = False
copybutton_prompt_text = "$ "


def _read_as_site(app: Sphinx, page: str, source: list[str]) -> None:
    """What pages have only on the site.

    ``[kafka.md](kafka.md#streams)`` is the title here. ``<!-- search: lag, metrics -->`` leads
    a search for one of these words to this place, before all other pages. A page of the
    repository outside the docs is a download here. An example lists its files, which are the
    folder of its page for readers of files.
    """
    text = re.sub(r"\[[\w./-]+\.md\](?=\([\w./-]+\.md(?:#[\w-]+)?\))", "[]", source[0])
    text = re.sub(r"\[([^]]+)\]\((\.\./[A-Z_]+\.md)\)", r"{download}`\1 <\2>`", text)
    text = re.sub(r"^<!-- search: (.+) -->$", _main_entries, text, flags=re.MULTILINE)
    if page.startswith("example/"):
        folder = (Path(app.srcdir) / page).parent
        files = sorted(f.relative_to(folder) for f in folder.rglob("*") if f.suffix in _SHOWN)
        text += "\n## Files\n\n" + "\n".join(f"- [`{file}`]({file})" for file in files) + "\n"
    source[0] = text


_SHOWN = (".json", ".jsonl", ".py", ".toml", ".txt")


def _main_entries(words: re.Match[str]) -> str:
    return "```{index} " + ", ".join(f"! {each}" for each in words[1].split(", ")) + "\n```"


def _stack_wide_tables(_app: Sphinx, tree: nodes.document) -> None:
    """Tables whose last column stands below the others on a phone, by its head."""
    for table in tree.findall(nodes.table):
        *_, last = next(table.findall(nodes.row)).children
        if last.astext() in ("meaning", "supported"):
            table["classes"] += ["stacked", f"by-{last.astext()}"]


def _all_pages(_app: Sphinx, env: BuildEnvironment, *_changed: set[str]) -> set[str]:
    """The pages to read again: a search index keeps no search words of pages that are not."""
    return set(env.found_docs)


def setup(app: Sphinx) -> None:
    app.connect("env-get-outdated", _all_pages)
    app.connect("source-read", _read_as_site)
    app.connect("doctree-read", _stack_wide_tables)
