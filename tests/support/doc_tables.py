"""The tables of the docs that come from the code; ``make tables`` writes them, examples, pictures.

A table stands between ``<!-- name:begin -->`` and ``<!-- name:end -->``.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import get_args

import attrs

from cdcfmt_cli.app import EXIT_CODES
from cdcfmt_cli.parameters import default_text
from cdcfmt_cli.settings import SECTIONS
from cdcfmt_core import Option, default_registry, errors
from cdcfmt_core.encoding import ENCODING_OPTIONS
from cdcfmt_core.types import Extension, LogicalType
from cdcfmt_files.draining import DRAINING_OPTIONS
from cdcfmt_mysql.conversions import Conversion
from cdcfmt_rocketmq.settings import SETTINGS as ROCKETMQ_SETTINGS
from cdcfmt_schema_registry.options import CONFLUENT_OPTIONS, GLUE_OPTIONS
from cdcfmt_testing import Carries, CodecTests, suite
from cdcfmt_testing.transports import Harness, TransportTests
from cdcfmt_testing.transports import suite as transport_suite
from cdcfmt_toolkit.topics.options import TOPIC_OPTIONS
from pyspark_cdcfmt.option_groups import OPTION_GROUPS
from pyspark_cdcfmt.rows.types import TypeOptions, spark_type
from pyspark_cdcfmt.sync.options import OPTIONS as SYNC_OPTIONS
from pyspark_cdcfmt.versions import MATRIX
from pyspark_cdcfmt.write_options import OUTPUT_GROUPS
from support import doc_examples, doc_pictures
from support.alter_kinds import CONVERTED, HALTED, SAME
from support.conversions import conversion_table
from support.doc_api import PUBLIC, modules
from support.doc_decisions import decisions
from support.doc_rooms import picture, rooms, way
from support.doc_transports import brokers, carried, promises
from support.doc_wires import samples, type_tables
from support.documented_types import DOCUMENTED
from support.encoding_ways import DETECTED, WAYS
from support.workspace import ROOT

TYPE_CHOICES = {
    "timeAs=interval": TypeOptions(time_as="interval"),
    "timeAs=micros": TypeOptions(time_as="micros"),
    "enumAs=name": TypeOptions(enum_as="name"),
    "enumAs=index": TypeOptions(enum_as="index"),
    "jsonAs=string": TypeOptions(json_as="string"),
    "invalidValues=text": TypeOptions(invalid_as_text=True),
}
"""The options that change a column's Spark type, one at a time."""


@cache
def _readme(plugin: str) -> Path:
    (found,) = ROOT.glob(f"plugins/*/{plugin}/README.md")
    return found


def tables() -> dict[Path, dict[str, str]]:
    """Every generated table: file, name, text."""
    messages, types = samples(), type_tables()
    transports = brokers().values()
    reading: dict[str, Sequence[Option]] = {}
    for name, group in OPTION_GROUPS.items():
        reading[name] = group
        if name == "Topics":
            reading |= {spec.title: _own(spec.options) for spec in transports}
    writing = {name: group for name, group in OUTPUT_GROUPS.items() if name != "Messages"}
    writing |= {spec.title: spec.sink_options for spec in transports}
    result = {
        ROOT / "docs/options.md": {"options": option_groups(reading)},
        ROOT / "docs/registries.md": {
            "options": option_table(CONFLUENT_OPTIONS),
            "glue-options": option_table(
                [each for each in GLUE_OPTIONS if each not in CONFLUENT_OPTIONS]
            ),
        },
        ROOT / "docs/types.md": {"types": type_table()},
        ROOT / "docs/writing-options.md": {"options": option_groups(writing)},
        ROOT / "docs/sync-options.md": {"options": option_table(SYNC_OPTIONS)},
        ROOT / "docs/sync-schemas.md": {"conversions": alter_table()},
        ROOT / "docs/layouts.md": {"encodings": encoding_table()},
        ROOT / "docs/troubleshooting.md": {"errors": error_table()},
        ROOT / "docs/deployment.md": {"versions": version_table()},
        ROOT / "docs/supported.md": {"versions": version_table()},
        ROOT / "CONTRIBUTING.md": {
            "rooms": _table(("room", "what is in it"), rooms()),
            "layers": picture(),
            "way": _table(("function", "what happens"), way()),
        },
        ROOT / "docs/api.md": {
            table: _table(("module", "names"), modules(table)) for table in PUBLIC
        },
        ROOT / "docs/decisions/index.md": {
            "decisions": _table(("", "decision", "date", "status"), decisions())
        },
        ROOT / "docs/encoding.md": {"encoding-options": option_table(ENCODING_OPTIONS)},
    }
    result[ROOT / "docs/transports.md"] = {
        "promises": _table(*promises()),
        "carried": _table(*carried("formats")),
    }
    result[ROOT / "docs/rocketmq.md"] = {"settings": option_table(ROCKETMQ_SETTINGS)}
    result[ROOT / "README.md"] = {"carried": _table(*carried("docs/formats"))}
    result[ROOT / "docs/conformance-kit.md"] = {
        "tests": kit_table(CodecTests, suite),
        "transport-tests": kit_table(TransportTests, transport_suite),
        "harness": harness_table(),
        "carries": _table(
            ("`Carries`", ""),
            [(f"`{field.name}`", field.metadata["help"]) for field in attrs.fields(Carries)],
        ),
    }
    for name, spec in default_registry().codecs().items():
        if name not in types or name not in messages:
            raise LookupError(f"tests/support/doc_wires.py has no message or no types of {name}")
        table = option_table(spec.options)
        head, *rows = types[name]
        result[ROOT / f"docs/formats/{name}.md"] = {
            "options": table,
            "message": messages[name],
            "types": _table(head, rows),
        }
        if spec.open_encoder is not None:
            encode_table = option_table(spec.encode_options)
            result[ROOT / f"docs/formats/{name}.md"]["encode-options"] = encode_table
        result[_readme(name)] = {"options": table}
    for name, transport in brokers().items():
        of_plugin = {
            "options": option_table(_own(transport.options)),
            "sink-options": option_table(transport.sink_options),
        }
        if transport.open_drain is not None:
            of_plugin["drain-options"] = option_table(transport.drain_options)
        result[_readme(name)] = of_plugin
    result[ROOT / "docs/cli.md"] = {
        "options": "\n\n".join(
            f"**{section}**\n\n{option_table(options)}" for section, options in SECTIONS.items()
        ),
        "draining-options": option_table(DRAINING_OPTIONS),
        "exit-codes": _table(
            ("code", "meaning"), [(f"`{code}`", text) for code, text in EXIT_CODES.items()]
        ),
    }
    return result


def option_groups(groups: Mapping[str, Sequence[Option]]) -> str:
    return "\n\n".join(
        f"## {group}\n\n{option_table(options)}" for group, options in groups.items()
    )


def _own(options: Iterable[Option]) -> list[Option]:
    """The options of a transport that are not those of all topics."""
    return [option for option in options if option not in TOPIC_OPTIONS]


def alter_table() -> str:
    """The effect of MODIFY and CHANGE on stored values, and of sync on targets."""
    rows = [
        (f"`{kind.old}`", f"`{kind.new}`", kind.effect.kind, _steps(kind.effect))
        for kind in (*SAME, *CONVERTED, *HALTED)
    ]
    return _table(("from", "to", "effect", "how, or why"), rows)


_STEPS = {
    "null": "NULL becomes {}",
    "round": "to {} decimal places, halves away from zero",
    "clip": "not below {}, not above {}",
    "cut": "to {} characters or bytes",
    "trim": "without blanks at the end",
    "pad": "with zero bytes to {}",
    "single": "to the nearest number of single precision",
}


def _steps(effect: Conversion) -> str:
    if effect.halt is not None:
        return effect.halt
    texts = [_STEPS[step].format(*(text or "''" for text in given)) for step, given in effect.steps]
    return "; ".join(texts) or ("the names stay" if effect.names else "")


def conversions() -> str:
    """The survivors of each conversion; takes some seconds."""
    head, *rows = conversion_table()
    return _table(head, rows)


def option_table(options: Sequence[Option]) -> str:
    if not options:
        return "None of its own."
    rows = [
        (f"`{option.name}`", _values(option), _default(option), _help(option)) for option in options
    ]
    return _table(("option", "value", "default", "meaning"), rows)


def kit_table(kit: type, suite: ModuleType) -> str:
    """The tests of a conformance kit, by the first sentences of the checks that they run."""
    rows = []
    for name, test in vars(kit).items():
        if not name.startswith("test_"):
            continue
        doc = inspect.getdoc(test)
        if doc is None:
            used = test.__code__.co_names
            modules = (n for n, word in enumerate(used) if inspect.ismodule(vars(suite).get(word)))
            at = next(modules)
            doc = inspect.getdoc(getattr(getattr(suite, used[at]), used[at + 1]))
        rows.append((f"`{name}`", _first_sentence(doc or "")))
    return _table(("test", "what must hold"), rows)


def harness_table() -> str:
    """The author's part of the kit of transports."""
    rows = []
    for name, method in vars(Harness).items():
        if inspect.isfunction(method):
            parameters = list(inspect.signature(method).parameters)[1:]
            doc = re.sub(r":meth:`(\w+)`", r"``\1``", inspect.getdoc(method) or "")
            rows.append((f"`{name}({', '.join(parameters)})`", _first_sentence(doc)))
    return _table(("method", ""), rows)


def _first_sentence(doc: str) -> str:
    return " ".join(doc.partition("\n\n")[0].split()).replace("``", "`")


def error_table() -> str:
    """Every class of error, by the first sentence about it."""
    rows = [
        (f"`{name}`", " ".join((item.__doc__ or "").partition("\n\n")[0].split()))
        for name, item in vars(errors).items()
        if isinstance(item, type) and issubclass(item, errors.CdcfmtError)
        if item is not errors.CdcfmtError
    ]
    return _table(("class", "meaning"), rows)


def version_table() -> str:
    rows = [
        (
            line.spark,
            f"{line.delta}: `{line.delta_package}`" if line.delta else "no build yet",
            ", ".join(f"3.{version}" for version in line.pythons),
            ", ".join(map(str, line.javas)),
        )
        for line in MATRIX
    ]
    return _table(("Spark", "Delta", "Python", "Java"), rows)


def type_table() -> str:
    rows = []
    for name, type_ in DOCUMENTED:
        usual = spark_type(type_, TypeOptions())
        others = [
            f"`{spark_type(type_, options).simpleString()}` under `{choice}`"
            for choice, options in TYPE_CHOICES.items()
            if spark_type(type_, options) != usual
        ]
        rows.append((name, f"`{usual.simpleString()}`", ", ".join(others)))
    return _table(("logical type", "Spark type", "or"), rows)


def encoding_table() -> str:
    """The value encodings of each logical type that ``test_value_encodings.py`` reads."""
    # A column with an Extension has its storage as the type.
    own = [each for each in get_args(LogicalType) if each is not Extension]
    ways: dict[str, set[str]] = {each.__name__: set() for each in own}
    for encoding, type_, *_ in (*WAYS, *DETECTED):
        ways[type(type_).__name__].add(f"`{encoding.name}`")
    rows = [
        (
            f"`{name}`",
            ", ".join(sorted(found)) or "none: the decoder reads a value that is not NULL",
        )
        for name, found in ways.items()
    ]
    return _table(("logical type", "value encodings that the kernel reads"), rows)


def render(text: str, name: str, table: str) -> str:
    """``text`` with this table between its markers."""
    pattern = rf"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)"
    result, count = re.subn(
        pattern, lambda match: f"{match[1]}\n{table}\n\n{match[2]}", text, flags=re.DOTALL
    )
    if count != 1:
        raise ValueError(f"markers {name}:begin and {name}:end stand {count} times")
    return result


def _values(option: Option) -> str:
    if option.type == "choice":
        return ", ".join(f"`{choice}`" for choice in option.choices)
    return option.describe_type()


def _default(option: Option) -> str:
    text = default_text(option)
    return text and f"`{text}`"


def _help(option: Option) -> str:
    return option.help + (" Never shown in texts." if option.hidden else "")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def main() -> None:
    written = tables()
    written[ROOT / "docs/conversions.md"] = {"conversions": conversions()}
    for path, of_file in written.items():
        text = path.read_text(encoding="utf-8")
        for name, table in of_file.items():
            text = render(text, name, table)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
    doc_examples.main()
    doc_pictures.main()


if __name__ == "__main__":
    sys.exit(main())
