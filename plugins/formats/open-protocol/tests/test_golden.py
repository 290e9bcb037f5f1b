"""TiCDC's Open Protocol against the truth: every event, column, value and type."""

from __future__ import annotations

from typing import Any

import pytest
from support.golden_data import (
    SOURCE_ZONE,
    Loss,
    Losses,
    Truth,
    load_variant,
    open_decoder,
    reading_options,
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

from cdcfmt_core.events import Image, RowChange, SchemaChange, TableSchema
from cdcfmt_mysql.codes import flag_names

VARIANTS = [
    "batched",
    "batched-4k",
    "claim-check",
    "claim-check-snappy",
    "default",
    "delete-only-handle-key",
    "handle-key-only",
    "lz4",
    "no-old-value",
    "only-output-updated-columns",
    "raw-change-event",
    "snappy",
]
SCENARIOS = {
    "batched-4k": {"defaults", "keys", "pk_change", "txn", "updated_columns"},
    "claim-check": LARGE,
    "claim-check-snappy": LARGE,
    "handle-key-only": LARGE,
    "lz4": COMPRESSED,
    "snappy": COMPRESSED,
    "raw-change-event": RAW,
}
"""The coverage of a variant; variants not listed cover everything."""

# --- What the wire does not carry ------------------------------------------------------

REPLACED_BYTES = [
    Loss(f"golden.{table}", column, "characters", "TiCDC writes U+FFFD for what is not UTF-8")
    for table, column in (("bad_utf8", "v"), ("bad_utf8", "c"), ("bad_latin1", "v"))
]
COLUMN_ORDER = Loss("*", "*", "column order", "TiCDC writes columns in alphabetical order")
EVERYWHERE = [*REPLACED_BYTES, *NO_NAMES, COLUMN_ORDER]
LOSSES: dict[str, list[Loss]] = {
    **dict.fromkeys(VARIANTS, EVERYWHERE),
    "delete-only-handle-key": [
        *EVERYWHERE,
        HANDLE_KEY_DELETES,
        Loss("golden.no_key", "*", "row", "the encoder has no handle key to write"),
    ],
    "handle-key-only": [*EVERYWHERE, *HANDLE_KEY_ONLY],
    "no-old-value": [
        *EVERYWHERE,
        Loss("*", "*", "op", "output-old-value is off: updates look like inserts"),
        Loss("*", "*", "before", "output-old-value is off"),
    ],
}


@pytest.fixture(scope="module", params=VARIANTS)
def run(request: pytest.FixtureRequest) -> Run:
    return decode_variant(load_variant("open", request.param), LOSSES[request.param])


def test_variants() -> None:
    assert variant_names("open") == VARIANTS


# --- Events ----------------------------------------------------------------------------


def test_events_equal_the_truth(run: Run) -> None:
    losses = run.losses()
    for message, events in run.decoded:
        assert len(events) == len(message.truth)
        for index, (truth, event) in enumerate(zip(message.truth, events, strict=True)):
            assert truth["kind"] == message.kind
            assert event.index == index
            expected = true_outline(truth)
            if outline(event) != expected:
                assert losses.covers(table_of(truth), "*", "op"), truth
                assert truth["op"] in ("insert", "update")
                assert outline(event) == ("row", "upsert", *expected[2:])
    losses.assert_all_seen("op")


def test_all_events_are_present(run: Run) -> None:
    check_no_event_is_missing(run, SCENARIOS.get(run.variant.name))


def test_batches(run: Run) -> None:
    most = max(len(events) for _, events in run.decoded)
    limit = run.variant.config["max-batch-size"]
    assert most <= limit
    assert (most > 1) == (limit > 1 and run.variant.name != "handle-key-only")
    if run.variant.name == "batched-4k":
        assert most > 16


def test_positions(run: Run) -> None:
    for truth, event in run.events():
        assert event.commit_ts == truth["commit_ts"]
        assert event.source_time is None
        assert event.emit_time is None
        if isinstance(event, RowChange | SchemaChange):
            assert event.sequence_commit is None


def test_ddl(run: Run) -> None:
    check_ddl_events(run)
    for truth, event in run.events():
        if isinstance(event, SchemaChange):
            assert event.extra is not None
            assert event.extra.keys() == {"ddl_type"}
            name = event.extra["ddl_type"]
            # The document's names are TiDB's own, but for a few words.
            if truth["ddl_type_code"] > 36:
                assert name == truth["ddl_type_code"]
            else:
                known = {"rebase auto_increment ID": "rebase auto id"}
                true = known.get(truth["ddl_type"], truth["ddl_type"])
                assert name.lower().replace("table partition", "partition") == true


def test_extras(run: Run) -> None:
    """Other fields are kept: row and partition ids, and the transport of a large message."""
    claims, handle_keys = set[str](), 0
    for truth, event in run.rows():
        extra = dict(event.extra or {})
        assert extra.pop("row_id", 0) == truth["row_id"]  # 0 is left out
        partition = truth["physical_table_id"] if truth["partitioned"] else None
        assert extra.pop("partition_id", None) == partition
        if run.variant.claims is not None and (location := extra.pop("claim_check", None)):
            name = location.rpartition("/")[2]
            assert (run.variant.claims / name).is_file()
            claims.add(name)
        if run.variant.name == "handle-key-only" and extra:
            assert extra.pop("only_handle_key") is True
            handle_keys += 1
        assert not extra
    run.check_claim_checks(claims)
    assert (handle_keys > 5) == (run.variant.name == "handle-key-only")


# --- Rows ------------------------------------------------------------------------------


def test_images(run: Run) -> None:
    """Each value of each image, with absent and completed columns."""
    losses = run.losses()
    for truth, event in run.rows():
        for side, image in images_of(truth, event):
            if image is None:
                assert (side, event.op) == ("old", "upsert")
                assert losses.covers(table_of(truth), "*", "before")
                continue
            _check_columns(run, truth, event, image, losses)
            for column in truth["columns"]:
                if column["name"] in image.values:
                    check_value(truth, column, side, image, losses)
    losses.assert_all_seen("before", "columns", "characters", "names")


def _check_columns(run: Run, truth: Truth, event: RowChange, image: Image, losses: Losses) -> None:
    columns = [column["name"] for column in truth["columns"]]
    handle, table = handle_of(truth), table_of(truth)
    only_handle_key = bool(event.extra and event.extra.get("only_handle_key"))
    reduced = only_handle_key or (
        event.op == "delete" and run.variant.name == "delete-only-handle-key"
    )
    sent = handle if reduced else columns
    assert sorted(image.values) == sorted(sent)
    if len(sent) < len(columns):
        assert losses.covers(table, "*", "columns"), table
    # A deleted row with only its key may have been reduced.
    doubtful = event.op == "delete" and handle == columns
    assert image.complete == (not reduced and not doubtful)
    unchanged: list[str] = []
    if run.variant.config["only-output-updated-columns"] and image is event.before:
        unchanged = [c["name"] for c in truth["columns"] if "new" in c and c["old"] == c["new"]]
    assert list(image.completed) == sorted(unchanged)


def test_table_schemas(run: Run) -> None:
    """Columns, keys, flags, source types and logical types; one object for each schema."""
    losses = run.losses()
    known: dict[Any, TableSchema] = {}
    for truth, event in run.rows():
        true = {column["name"]: column for column in truth["columns"]}
        names = event.table.column_names
        image = event.after or event.before
        assert image is not None
        assert list(names) == sorted(names)
        assert list(image.values) == list(names)
        if list(names) != [name for name in true if name in names]:
            assert losses.covers(table_of(truth), "*", "column order")
        handle = handle_of(truth)
        assert list(event.table.key_columns) == sorted(handle)
        for column in event.table.columns:
            type_, flags = true[column.name]["type"], true[column.name]["flag_bits"]
            plain, logical, _ = TYPES[type_]
            assert column.source_type == plain.removesuffix(" zerofill")
            assert column.type == logical, column
            assert column.key == (column.name in handle)
            assert column.nullable == ("nullable" in true[column.name]["flags"])
            assert column.flags == flag_names(flags)
        identity = (
            event.table.database,
            event.table.table,
            tuple((c.name, c.source_type, c.flags) for c in event.table.columns),
        )
        assert known.setdefault(identity, event.table) is event.table
    losses.assert_all_seen("column order")
    if run.variant.name in ("batched", "default"):
        used = {c["type"] for truth, _ in run.rows() for c in truth["columns"]}
        assert used == TYPES.keys()


# --- Requested options --------------------------------------------------------------------


def test_inserts_without_old_values_are_certain_only_beside_an_update() -> None:
    """``oldValue=auto`` never decodes an update as an insert."""
    seen = {}
    for name in ("batched", "no-old-value"):
        variant = load_variant("open", name)
        decoder = open_decoder(**(reading_options(variant) | {"oldValue": "auto"}))
        ops = set()
        for message in variant.messages:
            for truth, event in zip(message.truth, decoder.decode(message.message), strict=True):
                if isinstance(event, RowChange):
                    ops.add((truth["op"], event.op))
        seen[name] = ops
    assert seen["no-old-value"] == {
        ("insert", "upsert"),
        ("update", "upsert"),
        ("delete", "delete"),
    }
    assert seen["batched"] == {
        ("insert", "insert"),
        ("insert", "upsert"),
        ("update", "update"),
        ("delete", "delete"),
    }


def test_handle_key_deletes_without_the_option() -> None:
    """With a handle key, a reduced delete is never taken for a complete one."""
    decoder = open_decoder(protocol="open-protocol", sourceTimeZone=SOURCE_ZONE)
    deletes = 0
    for message in load_variant("open", "delete-only-handle-key").messages:
        for event in decoder.decode(message.message):
            if isinstance(event, RowChange) and event.op == "delete":
                assert event.before is not None
                assert not event.before.complete
                deletes += 1
    assert deletes == 65
