"""The command line ``cdcfmt``: shows the content of messages, and their errors.

docs/cli.md describes it.  Only this package imports click and rich.
"""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Entry point of the script."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ImportError as error:
        sys.exit(
            f"cdcfmt: the command line needs {error.name}: pip install cdcfmt-cli "
            "(python -m cdcfmt_core lists the formats without it)"
        )
    from cdcfmt_cli.app import app

    # Python's default takes half the time of a conversion with thousands of tables.
    gc.set_threshold(50_000)
    app(prog_name="cdcfmt")
