"""``python -m cdcfmt_core.testing FORMAT CASE...``: writes the ``events.json`` of cases.

What it writes is what the decoder gives, right or wrong: hold it against what was in the
database before you keep it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from cdcfmt_core.errors import CdcfmtError
from cdcfmt_core.events import Corrupt
from cdcfmt_core.registry import default_registry
from cdcfmt_core.testing.cases import load_case
from cdcfmt_core.testing.event_json import events_to_json
from cdcfmt_core.testing.subject import Subject


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m cdcfmt_core.testing",
        description="Write the events.json of golden cases, as the decoder gives them now. "
        "Hold them against what was in the database before you keep them.",
    )
    parser.add_argument("format", help="name of the format")
    parser.add_argument("case", nargs="+", type=Path, help="folder with messages.jsonl in it")
    parser.add_argument("--again", action="store_true", help="also where there is one already")
    parser.add_argument(
        "--corrupt", action="store_true", help="also where messages are corrupt, as is meant"
    )
    given = parser.parse_args(arguments)
    try:
        spec = default_registry().get_codec(given.format)
        for folder in given.case:
            path = folder / "events.json"
            if path.exists() and not given.again:
                print(f"{path} is there already: --again writes it once more", file=sys.stderr)
                return 1
            case = load_case(folder)
            events = Subject(spec, [case]).decode(case)
            errors = [e.error for of in events for e in of if isinstance(e, Corrupt)]
            if errors and not given.corrupt:
                bad = sum(any(isinstance(e, Corrupt) for e in of) for of in events)
                print(
                    f"{folder}: {bad} of {len(events)} are corrupt: {errors[0]}; nothing is "
                    "written; --corrupt does it all the same",
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
