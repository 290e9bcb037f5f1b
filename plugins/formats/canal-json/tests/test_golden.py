"""TiCDC's Canal-JSON against the truth: every event, column, value and type."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.golden_data import (
    SOURCE_ZONE,
    GoldenMessage,
    Loss,
    Losses,
    Truth,
    Variant,
    load_variant,
    open_decoder,
    read_files,
    variant_names,
)
from support.golden_rows import (
    COMPRESSED,
    HANDLE_KEY_DELETES,
    HANDLE_KEY_ONLY,
    LARGE,
    NO_NAMES,
    RAW,
    TYPES,
    Run,
    check_ddl_events,
    check_no_event_is_missing,
    check_value,
    decode_variant,
    handle_of,
    images_of,
    outline,
    table_of,
    true_outline,
)

from cdcfmt_core.events import Image, Message, RowChange, SchemaChange, TableSchema

VARIANTS = [
    "claim-check",
    "claim-check-lz4",
    "claim-check-raw-value",
    "content-compatible",
    "default",
    "delete-only-handle-key",
    "handle-key-only",
    "lz4",
    "only-output-updated-columns",
    "raw-change-event",
    "snappy",
    "storage-txn",
    "tidb-extension",
]

SCENARIOS = {
    "claim-check": LARGE,
    "claim-check-lz4": LARGE,
    "claim-check-raw-value": LARGE,
    "handle-key-only": LARGE,
    "lz4": COMPRESSED,
    "snappy": COMPRESSED,
    "raw-change-event": RAW,
    "storage-txn": {"all_types", "bytes", "keys", "txn"},
}
"""The coverage of a variant; variants not listed cover everything."""

# --- What the wire does not carry ------------------------------------------------------

NO_COMMIT_TS = Loss("*", "*", "commit_ts", "enable-tidb-extension is off")
NO_WATERMARKS = Loss("*", "*", "watermark", "enable-tidb-extension is off")
NO_PK_NAMES = [
    Loss(f"golden.{table}", "*", "key columns", "pkNames: a unique key is no primary key")
    for table in ("uk_no_pk", "uk_change")
]
REPLACED_BYTES = [
    Loss(f"golden.{table}", column, "characters", "TiCDC writes U+FFFD for what is not UTF-8")
    for table, column in (
        ("bad_utf8", "v"),
        ("bad_utf8", "t"),
        ("bad_utf8", "c"),
        ("bad_latin1", "v"),
        ("bad_latin1", "t"),
    )
]
EVERYWHERE = [*NO_PK_NAMES, *REPLACED_BYTES, *NO_NAMES]
LOSSES: dict[str, list[Loss]] = {
    **dict.fromkeys(VARIANTS, EVERYWHERE),
    "content-compatible": [*NO_PK_NAMES, *REPLACED_BYTES],
    "default": [*EVERYWHERE, NO_COMMIT_TS, NO_WATERMARKS],
    "delete-only-handle-key": [*EVERYWHERE, HANDLE_KEY_DELETES],
    "handle-key-only": [*EVERYWHERE, *HANDLE_KEY_ONLY],
    "storage-txn": [
        *EVERYWHERE,
        Loss("*", "*", "ddl", "data files of the storage sink hold rows only"),
        Loss("*", "*", "watermark", "data files of the storage sink hold rows only"),
    ],
}

# --- Decoding --------------------------------------------------------------------------


@pytest.fixture(scope="module", params=VARIANTS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    variant = load_variant("canal-json", request.param)
    folder = tmp_path_factory.mktemp(variant.name)
    return decode_variant(
        variant, LOSSES[variant.name], lambda golden: _messages(variant, golden, folder)
    )


def _messages(variant: Variant, message: GoldenMessage, folder: Path) -> list[Message]:
    """The message, or the messages of a file of the storage sink."""
    if variant.name != "storage-txn":
        return [message.message]
    assert message.value is not None
    path = folder / f"CDC{message.seq:06}.json"
    path.write_bytes(message.value)
    return read_files([path])


def test_variants() -> None:
    assert variant_names("canal-json") == VARIANTS


# --- Events ----------------------------------------------------------------------------


def test_events_equal_the_truth(run: Run) -> None:
    for message, events in run.decoded:
        assert list(map(outline, events)) == list(map(true_outline, message.truth))
        assert {truth["kind"] for truth in message.truth} == {message.kind}


def test_all_events_are_present(run: Run) -> None:
    check_no_event_is_missing(run, SCENARIOS.get(run.variant.name))


def test_positions(run: Run) -> None:
    losses = run.losses()
    for truth, event in run.events():
        physical = truth["commit_ts"] >> 18
        if event.commit_ts != truth["commit_ts"]:
            assert event.commit_ts is None
            assert losses.covers("*", "*", "commit_ts")
        assert event.source_time == physical * 1000
        assert isinstance(event.emit_time, int)
        assert event.emit_time >= event.source_time
        assert event.index == 0
        if isinstance(event, RowChange | SchemaChange):
            assert event.sequence_commit == (physical << 18 if event.commit_ts is None else None)
    losses.assert_all_seen("commit_ts")


def test_ddl(run: Run) -> None:
    check_ddl_events(run)


def test_extras(run: Run) -> None:
    """Other fields are kept, such as the transport of a large message."""
    seen = Counter()
    for truth, event in run.events():
        extra = dict(event.extra or {})
        if extra:
            assert truth["table"] in ("bytes_t", "large_t")
        if run.variant.claims is not None and (location := extra.pop("claim_check", None)):
            assert location.startswith("file:///")
            assert (run.variant.claims / location.rpartition("/")[2]).is_file()
            seen["claim"] += 1
        if run.variant.name == "handle-key-only" and extra:
            assert extra.pop("only_handle_key") is True
            seen["handle key"] += 1
        assert not extra
    claims = len(list(run.variant.claims.iterdir())) if run.variant.claims else 0
    assert seen["claim"] == claims
    assert seen["handle key"] == (10 if run.variant.name == "handle-key-only" else 0)


# --- Rows ------------------------------------------------------------------------------


def test_key_columns(run: Run) -> None:
    losses = run.losses()
    for truth, event in run.rows():
        assert event.table.key_columns == tuple(truth["pk_names"])
        if list(event.table.key_columns) != handle_of(truth):
            assert losses.covers(table_of(truth), "*", "key columns"), table_of(truth)
        for column in event.table.columns:
            assert column.key == (column.name in truth["pk_names"])
            assert column.nullable is None
    losses.assert_all_seen("key columns")


def test_images(run: Run) -> None:
    """Each value of each image, with absent and completed columns."""
    losses = run.losses()
    for truth, event in run.rows():
        for side, image in images_of(truth, event):
            assert image is not None
            _check_columns(run, truth, event, image, losses)
            for column in truth["columns"]:
                if column["name"] in image.values:
                    check_value(truth, column, side, image, losses)
    losses.assert_all_seen("columns", "characters", "names")


def _check_columns(run: Run, truth: Truth, event: RowChange, image: Image, losses: Losses) -> None:
    columns = [column["name"] for column in truth["columns"]]
    handle, table = handle_of(truth), table_of(truth)
    only_handle_key = bool(event.extra and event.extra.get("only_handle_key"))
    reduced = only_handle_key or (
        event.op == "delete" and run.variant.name == "delete-only-handle-key"
    )
    if reduced:
        assert list(image.values) == handle
        assert handle == columns or losses.covers(table, "*", "columns"), table
    else:
        assert sorted(image.values) == sorted(columns)
    assert image.complete == (not reduced)
    unchanged: list[str] = []
    if run.variant.config["only-output-updated-columns"] and image is event.before:
        unchanged = [c["name"] for c in truth["columns"] if "new" in c and c["old"] == c["new"]]
    assert list(image.completed) == unchanged


def test_table_schemas(run: Run) -> None:
    """Column order, source types and logical types; one object for each schema."""
    known: dict[Any, TableSchema] = {}
    full = bool(run.variant.config["content-compatible"])
    for truth, event in run.rows():
        types = {column["name"]: column["type"] for column in truth["columns"]}
        names = event.table.column_names
        images = [image for image in (event.before, event.after) if image is not None]
        assert list(names) == [name for name in types if name in images[0].values]
        for column in event.table.columns:
            plain, plain_type, full_type = TYPES[types[column.name]]
            assert column.source_type == (types[column.name] if full else plain)
            assert column.type == (full_type if full else plain_type), column
        identity = (
            event.table.database,
            event.table.table,
            tuple((column.name, column.source_type) for column in event.table.columns),
            event.table.key_columns,
        )
        assert known.setdefault(identity, event.table) is event.table
    if run.variant.name in ("content-compatible", "tidb-extension"):
        used = {c["type"] for truth, _ in run.rows() for c in truth["columns"]}
        assert used == TYPES.keys()


def test_handle_key_deletes_without_the_option() -> None:
    """With a primary key, a reduced delete is never taken for a complete one."""
    variant = load_variant("canal-json", "delete-only-handle-key")
    decoder = open_decoder(protocol="canal-json", sourceTimeZone=SOURCE_ZONE)
    taken_for_whole = set()
    for message in variant.messages:
        for truth, event in zip(message.truth, decoder.decode(message.message), strict=True):
            if isinstance(event, RowChange) and event.op == "delete":
                assert event.before is not None
                if event.before.complete:
                    taken_for_whole.add(truth["table"])
    assert taken_for_whole == {"uk_no_pk", "uk_change"}
