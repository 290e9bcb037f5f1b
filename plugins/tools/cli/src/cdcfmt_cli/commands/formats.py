"""``cdcfmt formats``: installed formats with their packages, and broken plugins with reasons."""

from __future__ import annotations

from collections.abc import Iterable

import click
from rich.console import Console
from rich.text import Text

from cdcfmt_cli.console import console
from cdcfmt_cli.parameters import declare, default_text
from cdcfmt_cli.printing import facts_grid, plain_table, print_table
from cdcfmt_cli.writers import print_json
from cdcfmt_core.codec import CodecSpec
from cdcfmt_core.listing import NOTHING, Listing, list_installed
from cdcfmt_core.options import Option
from cdcfmt_core.registry import default_registry


@declare("formats", "The installed formats; a format's options.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def command(name: str | None, as_json: bool) -> bool:
    """List the installed formats, or one format's options.

    Exit code 1 if a plugin is broken or two plugins have the same name.
    """
    if name is not None:
        _show_format(default_registry().get_codec(name), as_json)
        return False
    listing = list_installed(default_registry())
    if as_json:
        print_json(_listing_json(listing))
    else:
        _show_listing(listing)
    return bool(listing.problems)


def _show_listing(listing: Listing) -> None:
    out = console()
    table = plain_table("format", "package", "version", "writes", "summary")
    table.columns[0].no_wrap = table.columns[1].no_wrap = table.columns[2].no_wrap = True
    for item in listing.formats:
        table.add_row(
            Text(item.spec.name, "name"),
            item.package,
            item.version,
            Text("yes", "ok") if item.spec.open_encoder else Text("–", "faint"),
            item.spec.summary,
        )
    if listing.formats:
        print_table(table, out)
    else:
        out.print(NOTHING)
    out.print()
    out.print(Text.assemble(("transports  ", "head"), ", ".join(listing.transports)))
    out.print(Text.assemble(("type maps   ", "head"), ", ".join(listing.type_maps)))
    registries = ", ".join(default_registry().schema_registries())
    out.print(Text.assemble(("schema registries  ", "head"), registries or "none"))
    for line in listing.notes:
        out.print(Text(line, "warn"))
    for problem in listing.problems:
        out.print(Text(f"broken: {problem}", "bad"), soft_wrap=True)


def _show_format(spec: CodecSpec, as_json: bool) -> None:
    if as_json:
        print_json(_format_json(spec))
        return
    out = console()
    out.print(Text.assemble((spec.name, "name"), f"  {spec.summary}"), soft_wrap=True)
    facts = facts_grid()
    if spec.aliases:
        facts.add_row("also", ", ".join(spec.aliases))
    facts.add_row("emits", ", ".join(sorted(spec.emits)))
    facts.add_row("writes", "yes" if spec.open_encoder else "no")
    facts.add_row("described", spec.spec_url)
    out.print(facts)
    out.print()
    if spec.options:
        _show_options("-o option", spec.options, out)
    else:
        out.print("Reading this format has no options.")
    if spec.encode_options:
        out.print()
        _show_options("-w option", spec.encode_options, out)


def _show_options(head: str, options: Iterable[Option], out: Console) -> None:
    table = plain_table(head, "value", "default", "meaning")
    table.columns[0].no_wrap = True
    for option in options:
        value = " ".join(option.choices) if option.choices else option.describe_type()
        table.add_row(
            Text(option.name, "name"), value, default_text(option), option.help.replace("`", "")
        )
    print_table(table, out)


def _listing_json(listing: Listing) -> dict[str, object]:
    return {
        "formats": [
            {"package": item.package, "version": item.version, **_format_json(item.spec)}
            for item in listing.formats
        ],
        "transports": listing.transports,
        "type_maps": listing.type_maps,
        "schema_registries": list(default_registry().schema_registries()),
        "notes": listing.notes,
        "problems": list(map(str, listing.problems)),
    }


def _format_json(spec: CodecSpec) -> dict[str, object]:
    return {
        "name": spec.name,
        "aliases": spec.aliases,
        "summary": spec.summary,
        "spec_url": spec.spec_url,
        "emits": sorted(spec.emits),
        "reads": True,
        "writes": spec.open_encoder is not None,
        "options": _options_json(spec.options),
        "encode_options": _options_json(spec.encode_options),
    }


def _options_json(options: Iterable[Option]) -> list[dict[str, object]]:
    return [
        {
            "name": option.name,
            "type": option.type,
            "choices": option.choices,
            "default": default_text(option) or None,
            "help": option.help,
        }
        for option in options
    ]
