"""The site that ``make docs`` makes of these pages: Sphinx, MyST and Furo."""

import re
from importlib import metadata

from sphinx.application import Sphinx

project = "cdcfmt"
project_copyright = "the cdcfmt authors, Apache-2.0"
release = metadata.version("cdcfmt-core")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
autodoc_class_signature = "separated"
autodoc_typehints = "none"
exclude_patterns = ["_build", "example"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
# What is in the repository alone: links there, names here.
nitpick_ignore_regex = [("myst", r"example/.*"), ("myst", r".*SECURITY.*")]

html_theme = "furo"
html_title = f"cdcfmt {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
copybutton_prompt_text = "$ "


def _name_pages_by_their_titles(_app: Sphinx, _page: str, source: list[str]) -> None:
    """``[kafka.md](kafka.md#streams)`` is for readers of files; here it is the title."""
    source[0] = re.sub(r"\[[\w./-]+\.md\](?=\([\w./-]+\.md(?:#[\w-]+)?\))", "[]", source[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", _name_pages_by_their_titles)
