"""The registry over really installed packages: dist-info folders, modules, entry points."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.installed_plugins import (
    DIALECTS,
    HEADER,
    Site,
    codec_module,
    transport_module,
    type_map_module,
)

from cdcfmt_core import (
    CodecSpec,
    Registry,
    TypeMap,
    default_registry,
    hookimpl,
    opening,
    options,
)
from cdcfmt_core.errors import (
    BrokenPluginError,
    CdcfmtError,
    DuplicateFormatError,
    OptionError,
    PluginApiError,
    UnknownFormatError,
)
from cdcfmt_core.events import Heartbeat, Message
from cdcfmt_core.types import Int, Text, Unknown


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.syspath_prepend(str(tmp_path))
    for variable in ("CDCFMT_DISABLED_PLUGINS", "CDCFMT_STRICT_PLUGINS"):
        monkeypatch.delenv(variable, raising=False)
    yield Site(tmp_path)
    # It may have been made here, with these plugins.
    default_registry.cache_clear()
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


BROKEN = {
    "import": ("import no_such_module_at_all", "ModuleNotFoundError: No module named"),
    "syntax": ("def broken(:", "SyntaxError"),
    "hook raises": (
        HEADER + "@hookimpl\ndef cdcfmt_register_codecs():\n    raise OSError('no disk')",
        "OSError: no disk",
    ),
    "result is no codec": (
        HEADER + "@hookimpl\ndef cdcfmt_register_codecs():\n    return ['bad']",
        "a hook returned 'bad' where CodecSpec belongs",
    ),
    "result is not iterable": (
        HEADER + "@hookimpl\ndef cdcfmt_register_codecs():\n    return 1",
        "TypeError: 'int' object is not iterable",
    ),
    "type map is none": (
        HEADER + "@hookimpl\ndef cdcfmt_register_type_maps():\n    return [{}]",
        "where TypeMap belongs",
    ),
    "unknown hook": (
        HEADER + "@hookimpl\ndef cdcfmt_register_codec():\n    return []",
        "unknown hook 'cdcfmt_register_codec'",
    ),
    "nothing returned": (
        HEADER + "@hookimpl\ndef cdcfmt_register_codecs():\n    [CodecSpec]",
        "its hooks return nothing: return lists of its specs",
    ),
    "no list": (
        codec_module("bad").replace("return [", "return next(").replace("    ]", "    )"),
        "a hook returned a CodecSpec: return a list",
    ),
    "an exit": ("raise SystemExit('no licence')", "ImportError: it exits: no licence"),
    "no summary": (
        HEADER + codec_module("bad").partition("@hookimpl")[0] + "x = CodecSpec('bad', None, '', "
        "print, print, frozenset(), type_map='mysql', api_version=1)",
        "format bad: summary is None, not text",
    ),
    "aliases that are text": (
        codec_module("bad", more="aliases='worse'"),
        "format bad: aliases must be a tuple, emits a frozenset",
    ),
    "options that are names": (
        codec_module("bad", more="options=('a',)"),
        "format bad: options must be a tuple of Option",
    ),
    "one option": (
        codec_module("bad", more="encode_options=__import__('cdcfmt_core').Option('a', 'A.')"),
        "format bad: options must be a tuple of Option",
    ),
    "another part of partitions": (
        codec_module("bad", more="ddl_partitions='one'"),
        "format bad: ddl_partitions must be all or first",
    ),
    "no decoder": (
        HEADER + codec_module("bad").partition("@hookimpl")[0] + "x = CodecSpec('bad', '', '', "
        "None, print, frozenset(), type_map='mysql', api_version=1)",
        "format bad: open_decoder and sniff must be functions",
    ),
    "no hook": (
        codec_module("bad").replace("@hookimpl\n", ""),
        "it has no hook: mark one of cdcfmt_register_codecs",
    ),
    "a name with blanks": (codec_module("my format"), "format 'my format': use letters"),
    "a path to no function": (
        codec_module("bad", more="explain='cdcfmt_bad.explain'"),
        "'cdcfmt_bad.explain' is not the path of a function: write package.module:function",
    ),
    "no function": (codec_module("bad", more="explain=1"), "1 is not a function: give one"),
    "schemas that are not found": (
        codec_module("bad", more="needs_schemas=True"),
        "format bad: needs_schemas without scan_schemas to find them",
    ),
    "unknown kinds": (
        codec_module("bad").replace("emits=frozenset()", "emits=frozenset({'rows'})"),
        "format bad: emits unknown kinds: rows",
    ),
    "an option twice": (
        codec_module("bad", more="options=(Option('a', ''), Option('A', ''))"),
        "format bad: options declared twice: a",
    ),
    "a default of another type": (
        codec_module("bad", more="options=(Option('a', '', 'bool', default='false'),)"),
        "option a: the default 'false' is not a parsed value; write False",
    ),
    "wrong arguments": (
        HEADER + "@hookimpl\ndef cdcfmt_register_codecs(registry):\n    return []",
        "Argument(s) {'registry'} are declared in the hookimpl but can not be found",
    ),
    "another name": (
        codec_module("good"),
        "it registers 'good', but has no entry point of that name",
    ),
}


BROKEN_TRANSPORTS = {
    "no spec": (
        HEADER + "@hookimpl\ndef cdcfmt_register_transports():\n    return [1]",
        "a hook returned 1 where TransportSpec belongs",
    ),
    "capitals": (transport_module("Bad"), "transport 'Bad': use lower-case letters"),
    "another name": (transport_module("good"), "it registers 'good', but has no entry point"),
    "a path to no function": (
        transport_module("bad", more="open_source='x.y'"),
        "'x.y' is not the path of a function: write package.module:function",
    ),
    "no end": (
        transport_module("bad", more=""),
        "declare open_source, open_input, open_sink or open_drain",
    ),
    "a prefix without a dot": (
        transport_module("bad", more="open_sink='x:y', prefix='bad'"),
        "transport bad: the prefix 'bad' is not a name followed by a dot",
    ),
    "an ability that is none": (
        transport_module("bad", more="open_sink='x:y', abilities=frozenset({'speed'})"),
        "transport bad: unknown abilities: speed",
    ),
    "abilities in a list": (
        transport_module("bad", more="open_sink='x:y', abilities=['keys']"),
        "transport bad: chosen_by must be a tuple, abilities a frozenset",
    ),
    "options in a tuple of options": (
        transport_module("bad", more="open_sink='x:y', sink_options=((Option('a', ''),),)"),
        "transport bad: options must be a tuple of Option",
    ),
    "an option twice": (
        transport_module("bad", more="open_sink='x:y', options=(Option('a', ''), Option('A', ''))"),
        "transport bad: options declared twice: a",
    ),
    "chosen by what it lacks": (
        transport_module("bad", more="open_sink='x:y', chosen_by=('queue',)"),
        "transport bad: chosen_by names unknown options: queue",
    ),
}


@pytest.mark.parametrize("kind", BROKEN_TRANSPORTS)
def test_broken_transport_does_not_affect_others(site: Site, kind: str) -> None:
    source, reason = BROKEN_TRANSPORTS[kind]
    site.install("cdcfmt-bad", {"bad": "bad_plugin"}, bad_plugin=source)
    site.install("cdcfmt-fine", {"fine": "fine_plugin"}, fine_plugin=transport_module("fine"))
    registry = site.registry()
    assert list(registry.transports()) == ["fine"]
    with pytest.raises(BrokenPluginError) as caught:
        registry.get_transport("bad")
    assert reason in str(caught.value)
    by_dist = {info.dist: info for info in registry.plugins()}
    assert by_dist["cdcfmt-bad"].error is caught.value
    assert by_dist["cdcfmt-fine"].transports == ("fine",)


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_plugin_does_not_affect_others(site: Site, kind: str) -> None:
    source, reason = BROKEN[kind]
    site.install("cdcfmt-bad", {"bad": "bad_plugin"}, version="0.3", bad_plugin=source)
    site.install("cdcfmt-fine", {"fine": "fine_plugin"}, fine_plugin=codec_module("fine"))
    registry = site.registry()
    assert registry.get_codec("fine").summary == "of fine_plugin"
    assert list(registry.codecs()) == ["fine"]

    with pytest.raises(BrokenPluginError) as caught:
        registry.get_codec("BAD")
    text = str(caught.value)
    assert text.startswith("plugin 'bad' of cdcfmt-bad 0.3 could not be loaded: ")
    assert reason in text
    assert isinstance(caught.value.__cause__, Exception)

    by_dist = {info.dist: info for info in registry.plugins()}
    assert by_dist["cdcfmt-bad"].error is caught.value
    assert by_dist["cdcfmt-bad"].codecs == ()
    assert by_dist["cdcfmt-fine"].error is None
    assert by_dist["cdcfmt-fine"].codecs == ("fine",)
    # The error of another missing format also names the broken plugin.
    with pytest.raises(UnknownFormatError, match="Broken: cdcfmt-bad"):
        registry.get_codec("third")


def test_entry_point_of_missing_module(site: Site) -> None:
    site.install("cdcfmt-a", {"a": "a_plugin:nothing"}, a_plugin=codec_module("a"))
    with pytest.raises(BrokenPluginError, match=r"AttributeError: .*nothing"):
        site.registry().get_codec("a")


def test_a_function_that_cannot_be_imported(site: Site) -> None:
    site.install(
        "cdcfmt-a", {"a": "lazy_a"}, lazy_a=codec_module("a", more="explain='no_such:explain'")
    )
    explain = site.registry().get_codec("a").explain
    assert explain is not None
    with pytest.raises(
        BrokenPluginError, match=r"a plugin's no_such:explain cannot be imported: ModuleNotFound"
    ):
        explain(Message(None, None), {})


def test_strict_raises_the_first_failure(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.install("cdcfmt-bad", {"bad": "bad_plugin"}, bad_plugin="1 / 0")
    site.install("cdcfmt-fine", {"fine": "fine_plugin"}, fine_plugin=codec_module("fine"))
    monkeypatch.setenv("CDCFMT_STRICT_PLUGINS", "0")
    assert list(site.registry().codecs()) == ["fine"]
    monkeypatch.setenv("CDCFMT_STRICT_PLUGINS", "1")
    with pytest.raises(BrokenPluginError, match="ZeroDivisionError"):
        site.registry().codecs()


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("2", r"plugin API 2, this cdcfmt-core supports 1: upgrade cdcfmt-core$"),
        ("0", r"plugin API 0, this cdcfmt-core supports 1: upgrade the plugin$"),
        ("None", r"an unnamed plugin API, .* supports 1: give its specs an api_version$"),
    ],
)
def test_a_plugin_for_another_api(site: Site, version: str, reason: str) -> None:
    source = codec_module("new", more="new=1").replace("api_version=1", f"api_version={version}")
    site.install("cdcfmt-new", {"new": "new_plugin"}, new_plugin=source)
    site.install("cdcfmt-fine", {"fine": "fine_plugin"}, fine_plugin=codec_module("fine"))
    registry = site.registry()
    assert list(registry.codecs()) == ["fine"]
    with pytest.raises(PluginApiError, match=r"cdcfmt-new 1\.0 was written for " + reason):
        registry.get_codec("new")


@pytest.mark.parametrize("name", ["canal-json", "kafka"])
def test_specs_can_be_pickled(name: str) -> None:
    registry = default_registry()
    spec = registry.codecs().get(name) or registry.get_transport(name)
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_error_lists_the_supported_api_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "API_VERSIONS", range(3, 6))
    options.check_api_version(4)
    with pytest.raises(PluginApiError, match="plugin API 2, this cdcfmt-core supports 3 to 5"):
        options.check_api_version(2)


# Names


def test_name_registered_by_two_packages(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.install("acme-one", {"acme": "acme_one"}, acme_one=codec_module("acme"))
    site.install("acme-two", {"acme": "acme_two"}, version="2.1", acme_two=codec_module("acme"))
    site.install("cdcfmt-fine", {"fine": "fine_plugin"}, fine_plugin=codec_module("fine"))
    registry = site.registry()
    with pytest.raises(
        DuplicateFormatError,
        match=r"format 'acme' is registered by acme-one 1\.0 and acme-two 2\.1",
    ):
        registry.get_codec("acme")
    assert list(registry.codecs()) == ["fine"]
    (conflict,) = registry.conflicts()
    assert "acme-one 1.0 and acme-two 2.1" in str(conflict)
    # As the error says.
    monkeypatch.setenv("CDCFMT_DISABLED_PLUGINS", "acme-one")
    registry = site.registry()
    assert registry.get_codec("acme").summary == "of acme_two"
    assert registry.conflicts() == []


def test_package_found_twice_counts_once(site: Site, tmp_path: Path) -> None:
    other = Site(tmp_path / "other")
    for place in (site, other):
        place.install("cdcfmt-a", {"a": "twin_plugin"}, twin_plugin=codec_module("a"))
    registry = Registry(entry_points=[*site.entry_points(), *other.entry_points()])
    assert registry.get_codec("a").summary == "of twin_plugin"
    assert registry.conflicts() == []
    assert len(registry.plugins()) == 1


def test_only_the_wanted_plugin_is_imported(site: Site) -> None:
    site.install("cdcfmt-a", {"a": "lazy_a"}, lazy_a=codec_module("a"))
    site.install("cdcfmt-b", {"b": "lazy_b"}, lazy_b=codec_module("b"))
    site.install("cdcfmt-m", {"mine": "lazy_m"}, lazy_m=type_map_module("mine", None, "{}"))
    registry = site.registry()
    assert not {"lazy_a", "lazy_b", "lazy_m"} & sys.modules.keys()
    registry.get_codec("A")
    registry.get_type_map("mysql")
    assert {"lazy_a", "lazy_b", "lazy_m"} & sys.modules.keys() == {"lazy_a"}
    registry.get_type_map("mine")
    assert "lazy_b" not in sys.modules
    registry.codecs()
    assert "lazy_b" in sys.modules


def test_names_are_matched_without_case(site: Site) -> None:
    site.install("cdcfmt-a", {"Acme-JSON": "case_plugin"}, case_plugin=codec_module("acme-Json"))
    registry = site.registry()
    assert registry.get_codec("ACME-json").name == "acme-Json"
    assert list(registry.codecs()) == ["acme-Json"]


def test_concurrent_lookups(site: Site) -> None:
    slow = "import time\ntime.sleep(0.2)\n"
    site.install("cdcfmt-a", {"a": "mod_a"}, mod_a=codec_module("a") + slow)
    registry = site.registry()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(registry.get_codec, ["a"] * 4))
    assert [codec.name for codec in found] == ["a"] * 4


def test_two_entry_points_of_one_module(site: Site) -> None:
    site.install(
        "cdcfmt-two",
        {"one": "two_plugin", "two": "two_plugin"},
        two_plugin=codec_module("one", "two"),
    )
    registry = site.registry()
    assert registry.get_codec("two").name == "two"
    assert registry.get_codec("one").name == "one"
    assert list(registry.codecs()) == ["one", "two"]
    assert registry.conflicts() == []
    assert all(info.error is None for info in registry.plugins())
    assert sys.modules["two_plugin"].calls == 1


def test_aliases(site: Site) -> None:
    site.install(
        "cdcfmt-a", {"a": "alias_a"}, alias_a=codec_module("a", more="aliases=('Short', 'both')")
    )
    site.install(
        "cdcfmt-b", {"b": "alias_b"}, alias_b=codec_module("b", more="aliases=('a', 'both')")
    )
    registry = site.registry()
    assert registry.get_codec("short").name == "a"
    # A name is stronger than another's alias.
    assert registry.get_codec("a").name == "a"
    assert list(registry.codecs()) == ["a", "b"]
    with pytest.raises(DuplicateFormatError, match=r"cdcfmt-a .* and cdcfmt-b"):
        registry.get_codec("both")
    (conflict,) = registry.conflicts()
    assert "format 'both'" in str(conflict)


def test_unknown_format_error_lists_formats_and_package(site: Site) -> None:
    for name in ("a", "b"):
        site.install(
            f"cdcfmt-{name}", {name: f"known_{name}"}, **{f"known_{name}": codec_module(name)}
        )
    registry = site.registry()
    with pytest.raises(UnknownFormatError) as caught:
        registry.get_codec("Debezium")
    assert str(caught.value) == (
        "unknown format 'Debezium'; installed: a, b. Install it: pip install cdcfmt-debezium"
    )
    with pytest.raises(UnknownFormatError) as caught:
        registry.get_codec("nobodys")
    assert str(caught.value) == "unknown format 'nobodys'; installed: a, b"
    with pytest.raises(UnknownFormatError, match=r"'canaljson'.*; did you mean canal-json\?$"):
        default_registry().get_codec("canaljson")
    with pytest.raises(UnknownFormatError, match="installed: none"):
        Registry(entry_points=DIALECTS).get_codec("a")


@pytest.mark.parametrize("disabled", ["off", "cdcfmt-off", " x , cdcfmt-off,"])
def test_disabled_plugins(site: Site, monkeypatch: pytest.MonkeyPatch, disabled: str) -> None:
    site.install("cdcfmt-off", {"off": "off_plugin"}, off_plugin=codec_module("off"))
    site.install("cdcfmt-fine", {"fine": "fine_plugin"}, fine_plugin=codec_module("fine"))
    monkeypatch.setenv("CDCFMT_DISABLED_PLUGINS", disabled)
    registry = site.registry()
    assert list(registry.codecs()) == ["fine"]
    assert "off_plugin" not in sys.modules
    assert [info.dist for info in registry.plugins() if info.disabled] == ["cdcfmt-off"]
    with pytest.raises(UnknownFormatError, match="is part of cdcfmt-off, which CDCFMT_DISABLED"):
        registry.get_codec("off")


# Transports


def test_a_transport_by_its_name_and_by_the_prefix_of_an_option(site: Site) -> None:
    site.install("cdcfmt-a", {"acme": "lazy_acme"}, lazy_acme=transport_module("acme"))
    site.install(
        "cdcfmt-b",
        {"other": "lazy_other"},
        lazy_other=transport_module("other", more="open_source='x:y', prefix='third.'"),
    )
    registry = site.registry()
    acme = registry.transport_of("acme.servers")
    assert acme is not None
    assert (acme.name, acme.prefix, acme.title) == ("acme", "acme.", "Acme")
    assert "lazy_other" not in sys.modules
    assert registry.get_transport("acme") is acme
    assert registry.transport_of("third.servers") is registry.get_transport("other")
    assert registry.transport_of("spark.servers") is None
    assert registry.transport_of("acme") is None
    with pytest.raises(UnknownFormatError, match="unknown transport 'third'; installed: acme, "):
        registry.get_transport("third")


def test_transports_with_the_same_name_or_prefix(site: Site) -> None:
    same = "open_source='x:y', prefix='acme.'"
    for dist, name, more in (
        ("one", "acme", "open_source='x:y'"),
        ("two", "other", same),
        ("three", "twice", "open_source='x:y'"),
        ("four", "twice", "open_source='x:y', prefix='fourth.'"),
        ("five", "fine", "open_source='x:y'"),
    ):
        module = f"{dist}_transport"
        site.install(dist, {name: module}, **{module: transport_module(name, more=more)})
    registry = site.registry()
    assert list(registry.transports()) == ["fine"]
    assert [error.problem for error in registry.conflicts()] == [
        "transport 'twice' is registered by four 1.0 and three 1.0",
        "prefix of options 'acme.' is registered by one 1.0 and two 1.0",
    ]
    for name in ("acme", "other", "twice"):
        with pytest.raises(DuplicateFormatError):
            registry.get_transport(name)
    with pytest.raises(DuplicateFormatError, match=r"'acme\.' is registered by one 1.0 and two"):
        registry.transport_of("acme.servers")


def test_a_transport_for_another_api(site: Site) -> None:
    more = "open_source='x:y', api_version=2, new=1"
    site.install("cdcfmt-new", {"new": "new_plugin"}, new_plugin=transport_module("new", more=more))
    with pytest.raises(PluginApiError, match=r"cdcfmt-new 1\.0 was written for plugin API 2"):
        site.registry().get_transport("new")


# Type maps


def test_an_override_is_explicit_and_falls_back(site: Site) -> None:
    site.install(
        "acme-types",
        {"mysql": "acme_types"},
        acme_types=type_map_module("acme", "mysql", "{'bigint': Text('gbk')}"),
    )
    registry = site.registry()
    resolve = registry.get_type_map("mysql")
    assert resolve("bigint") == Text("gbk")
    # Types missing in the map come from the overridden map, or are Unknown.
    assert resolve("int unsigned") == Int(32, signed=False)
    assert resolve("mystery(1)") == Unknown("mystery(1)")
    assert resolve("x" * 5_000) == Unknown("x" * 5_000)
    assert registry.overrides() == ["type map mysql is overridden by acme (acme-types 1.0)"]
    assert registry.conflicts() == []


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ("{'bigint': Text}", "maps 'bigint' to <class .*, which is not a logical type"),
        ("{'bigint': 'TEXT'}", "maps 'bigint' to 'TEXT', which is not a logical type"),
        ("type('Map', (), {'get': lambda text: 1 // 0})", "failed for 'bigint': ZeroDivision"),
    ],
)
def test_error_names_a_type_map_that_returns_no_type(
    site: Site, answers: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    module = type_map_module("acme", None, answers)
    site.install("acme-types", {"acme": "acme_types"}, acme_types=module)
    with pytest.raises(BrokenPluginError, match=f"type map 'acme' of acme-types 1.0 {reason}"):
        site.registry().get_type_map("acme")("bigint")


def test_failing_override_is_skipped(
    site: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every MySQL format uses the overridden map, and works."""
    monkeypatch.setattr("cdcfmt_core.texts._warned", set())
    module = type_map_module("acme", "mysql", "{'bigint': 'TEXT', 'blob': Text()}")
    site.install("acme-types", {"mysql": "acme_types"}, acme_types=module)
    resolve = site.registry().get_type_map("mysql")
    for text in ("bigint", "bigint unsigned", "bigint"):
        assert resolve(text) == Int(64, signed="unsigned" not in text)
    assert resolve("blob") == Text()
    (warning,) = (record.getMessage() for record in caplog.records)
    assert "an override of type map mysql is left out: type map 'acme' of acme-types 1.0" in warning
    assert "CDCFMT_DISABLED_PLUGINS=mysql" in warning


def test_unloadable_override_is_reported(
    site: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also to those who name their format: types differ without it."""
    monkeypatch.setattr("cdcfmt_core.texts._warned", set())
    site.install("acme-types", {"mysql": "acme_types"}, acme_types="1 / 0")
    assert site.registry().get_type_map("mysql")("int") == Int(32)
    (warning,) = (record.getMessage() for record in caplog.records)
    assert "plugin 'mysql' of acme-types 1.0 could not be loaded: ZeroDivisionError" in warning


def test_override_of_missing_map_is_reported(site: Site) -> None:
    site.install(
        "acme-types", {"mysql": "acme_types"}, acme_types=type_map_module("acme", "MySQL", "{}")
    )
    (line,) = site.registry().overrides()
    assert line.endswith("(acme-types 1.0), which is not installed")


def test_two_overrides_are_a_conflict(site: Site) -> None:
    for name in ("one", "two"):
        site.install(
            f"acme-{name}",
            {"mysql": f"override_{name}"},
            **{f"override_{name}": type_map_module(name, "mysql", "{}")},
        )
    registry = site.registry()
    with pytest.raises(
        DuplicateFormatError,
        match=r"override of type map 'mysql' .* acme-one 1\.0 and acme-two 1\.0",
    ):
        registry.get_type_map("mysql")
    assert len(registry.overrides()) == 2
    assert len(registry.conflicts()) == 1


def test_undeclared_override_is_a_conflict(site: Site) -> None:
    site.install(
        "acme-types", {"mysql": "silent_types"}, silent_types=type_map_module("mysql", None, "{}")
    )
    registry = site.registry()
    assert registry.get_type_map("mysql")("int") == Int(32)
    (conflict,) = registry.conflicts()
    assert re.match(r"type map 'mysql' .* acme-types 1.0 and cdcfmt-mysql", str(conflict))
    assert "; that of cdcfmt-mysql " in str(conflict)


def test_other_type_maps(site: Site) -> None:
    site.install(
        "acme-ora",
        {"Oracle": "acme_ora"},
        acme_ora=type_map_module("Oracle", None, "{'N': Text()}"),
    )
    site.install("acme-bad", {"db2": "acme_bad"}, acme_bad="1 / 0")
    registry = site.registry()
    assert registry.get_type_map("Oracle")("N") == Text()
    assert registry.get_type_map("Oracle")("bigint") == Unknown("bigint")
    assert registry.overrides() == []
    with pytest.raises(UnknownFormatError) as caught:
        registry.get_type_map("pg")
    assert str(caught.value).startswith("unknown type map 'pg'; installed: Oracle, mysql")
    # Its package may provide it by the entry point of a format only.
    hint = "; its package needs the entry point 'pg' (group cdcfmt). Broken: acme-bad"
    assert hint in str(caught.value)
    with pytest.raises(UnknownFormatError, match="did you mean mysql"):
        registry.get_type_map("mysqll")
    with pytest.raises(BrokenPluginError, match="'db2' of acme-bad"):
        registry.get_type_map("db2")


# In this process


class Plugin:
    """A plugin object, as a notebook would make it."""

    def __init__(self, name: str, summary: str = "") -> None:
        self.name = name
        self.summary = summary

    @hookimpl
    def cdcfmt_register_codecs(self) -> list[CodecSpec]:
        return [
            CodecSpec(
                name=self.name,
                summary=self.summary,
                spec_url="",
                open_decoder=lambda options, context: lambda message: [Heartbeat()],
                sniff=lambda message: 1.0,
                emits=frozenset({"heartbeat"}),
                type_map="mysql",
                api_version=1,
            )
        ]

    @hookimpl
    def cdcfmt_register_type_maps(self) -> list[TypeMap]:
        return [TypeMap(self.name + "-types", {"a": Text()}.get)]


def test_registering_in_this_process(site: Site) -> None:
    site.install("cdcfmt-fine", {"fine": "fine_plugin"}, fine_plugin=codec_module("fine"))
    registry = site.registry()
    info = registry.register(Plugin("mine"), "my notebook")
    assert (info.codecs, info.type_maps, info.error) == (("mine",), ("mine-types",), None)
    assert list(registry.codecs()) == ["fine", "mine"]
    assert registry.get_type_map("mine-types")("a") == Text()
    registry.register(Plugin("fine"), "another")
    with pytest.raises(DuplicateFormatError, match=r"cdcfmt-fine 1\.0 and another in this"):
        registry.get_codec("fine")


def test_registering_again_replaces() -> None:
    registry = Registry(entry_points=[])
    first = Plugin("mine", "first")
    registry.register(first, "cell")
    registry.register(first, "cell")
    registry.register(Plugin("mine", "second"), "cell")
    assert registry.get_codec("mine").summary == "second"
    assert registry.conflicts() == []
    assert len(registry.plugins()) == 1
    registry.register(Plugin("renamed"), "cell")
    assert list(registry.codecs()) == ["renamed"]
    with pytest.raises(UnknownFormatError):
        registry.get_type_map("mine-types")


def test_broken_object_is_isolated() -> None:
    registry = Registry(entry_points=DIALECTS)
    registry.register(Plugin("mine"), "fine")
    plugin = Plugin("")
    plugin.name = None  # type: ignore[assignment]
    info = registry.register(plugin, "bad")
    assert isinstance(info.error, BrokenPluginError)
    assert list(registry.codecs()) == ["mine"]


# Options and records


def test_opening_a_decoder_validates_its_options(site: Site) -> None:
    more = "options=(Option('maxRows', 'how many', type='int', default=3),)"
    site.install("cdcfmt-a", {"a": "options_a"}, options_a=codec_module("a", more=more))
    registry = site.registry()
    decoder = opening.open_decoder("a", {"MAXROWS": "4"}, registry=registry)
    assert decoder.decode(Message(None, b"")) == [Heartbeat()]
    with pytest.raises(OptionError, match="has no option 'maxRow'; did you mean maxRows"):
        opening.open_decoder("a", {"maxRow": 1}, registry=registry)


def test_a_function_by_its_path_is_imported_when_it_is_called(site: Site) -> None:
    site.install(
        "cdcfmt-a",
        {"a": "paths_a"},
        paths_a=codec_module("a", more="explain='explains_a:explain'"),
        explains_a="def explain(message, options):\n    return [('value', message.value)]\n",
    )
    explain = pickle.loads(pickle.dumps(site.registry().get_codec("a").explain))
    assert "explains_a" not in sys.modules
    assert list(explain(Message(None, b"x"), {})) == [("value", b"x")]
    assert "explains_a" in sys.modules


def test_no_hook_is_called_while_messages_are_decoded(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.install("cdcfmt-a", {"a": "counted_a"}, counted_a=codec_module("a"))
    registry = site.registry()
    decoder = opening.open_decoder("a", registry=registry)
    monkeypatch.delattr(registry._loader, "_manager")
    for _ in range(10):
        assert decoder.decode(Message(None, b"x")) == [Heartbeat()]
    # Nor when a format is looked up again.
    assert registry.get_codec("a").name == "a"
    assert sys.modules["counted_a"].calls == 1


def test_errors_of_plugins_share_a_base_class(site: Site) -> None:
    site.install("cdcfmt-bad", {"bad": "bad_plugin"}, bad_plugin="1 / 0")
    with pytest.raises(CdcfmtError):
        site.registry().get_codec("bad")


# What is installed here


def test_the_default_registry_finds_what_is_installed() -> None:
    assert default_registry() is default_registry()
    spec = default_registry().get_codec("canal")
    assert spec.name == "canal-json"


def run_main(site: Site, **environment: str) -> tuple[int, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CDCFMT_")}
    done = subprocess.run(
        [sys.executable, "-m", "cdcfmt_core"],
        env={**kept, "PYTHONPATH": str(site.path), "PYTHONIOENCODING": "utf-8", **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_discovery_in_a_fresh_process(site: Site) -> None:
    site.install("cdcfmt-fine", {"fine": "fine_plugin"}, fine_plugin=codec_module("fine"))
    site.install(
        "acme-types", {"mysql": "acme_types"}, acme_types=type_map_module("acme", "mysql", "{}")
    )
    site.install(
        "acme-mq",
        {"mq": "acme_mq"},
        version="3",
        acme_mq=transport_module("mq", more="open_source='builtins:dict'"),
    )
    code, output = run_main(site)
    assert code == 0, output
    assert "mq (acme-mq 3)" in output
    assert "canal-json" in output
    assert "of fine_plugin" in output
    assert "type map mysql is overridden by acme (acme-types 1.0)" in output

    site.install("cdcfmt-bad", {"bad": "bad_plugin"}, bad_plugin="import no_such_module_at_all")
    site.install("acme-fine", {"fine": "acme_fine"}, acme_fine=codec_module("fine"))
    code, output = run_main(site)
    assert code == 1
    assert (
        "broken: plugin 'bad' of cdcfmt-bad 1.0 could not be loaded: ModuleNotFoundError" in output
    )
    assert "format 'fine' is registered by acme-fine 1.0 and cdcfmt-fine 1.0" in output

    code, output = run_main(site, CDCFMT_DISABLED_PLUGINS="acme-fine,bad")
    assert code == 0, output
    assert "disabled: bad of cdcfmt-bad" in output
    assert "disabled: fine of acme-fine" in output

    code, output = run_main(site, CDCFMT_STRICT_PLUGINS="1")
    assert code == 1
    assert "BrokenPluginError: plugin 'bad'" in output


def test_listing_ends_quietly_on_a_closed_pipe() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cdcfmt_core"],
            stdout=writing, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")
