"""The site that ``make docs`` makes of these pages: Sphinx, MyST and Furo."""

from importlib import metadata

project = "cdcfmt"
project_copyright = "the cdcfmt authors, Apache-2.0"
release = metadata.version("cdcfmt-core")

extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["_build", "example"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
# Folders of the repository: links there, names here.
nitpick_ignore_regex = [("myst", r"example/.*")]

html_theme = "furo"
html_title = f"cdcfmt {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
copybutton_prompt_text = "$ "
