"""``python -m cdcfmt_testing FORMAT CASE...``: write the ``events.json`` of cases.

The file holds the decoder's output, right or wrong: compare it with the source database before
you keep it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from cdcfmt_core.errors import CdcfmtError
from cdcfmt_core.events import Corrupt
from cdcfmt_core.registry import default_registry
from cdcfmt_testing.cases import load_case
from cdcfmt_testing.event_json import events_to_json
from cdcfmt_testing.subject import Subject


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m cdcfmt_testing",
        description="Write the events.json of golden cases, as the decoder now decodes them. "
        "Compare them with the source database before you keep them.",
    )
    parser.add_argument("format", help="name of the format")
    parser.add_argument("case", nargs="+", type=Path, help="folder with a messages.jsonl")
    parser.add_argument("--again", action="store_true", help="overwrite existing files")
    parser.add_argument(
        "--corrupt", action="store_true", help="accept corrupt messages, if that is intended"
    )
    given = parser.parse_args(arguments)
    try:
        spec = default_registry().get_codec(given.format)
        for folder in given.case:
            path = folder / "events.json"
            if path.exists() and not given.again:
                print(f"{path} already exists: overwrite it with --again", file=sys.stderr)
                return 1
            case = load_case(folder)
            events = Subject(spec, [case]).decode(case)
            errors = [e.error for of in events for e in of if isinstance(e, Corrupt)]
            if errors and not given.corrupt:
                bad = sum(any(isinstance(e, Corrupt) for e in of) for of in events)
                print(
                    f"{folder}: {bad} of {len(events)} are corrupt: {errors[0]}; nothing was "
                    "written; --corrupt accepts them",
                    file=sys.stderr,
                )
                return 1
            path.write_text(events_to_json(events), encoding="ascii")
            print(f"{path}: the events of {len(case.messages)} messages")
    except (CdcfmtError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
