"""The tables of flattened deletes: as the rows of their topics have them, never another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from debezium_messages import error_of, message, row
from support.framed_data import framed_messages
from support.schema_registry import offline_registry

from cdcfmt_core import opening
from cdcfmt_core.events import Event, Message, RowChange
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_toolkit.schema_directory import SchemaDirectory

KEY = {"id": 1}
SET = "postgres/avro_confluent_unwrap"
ODD = 'T "q".v2 表'
ODD_TOPIC = "pg_avro_confluent_unwrap._n__Schema.T__q_.v2__"
POSTGRES = (("__debezium.context.connectorName", b"postgresql"),)


class Decoder:
    """Decodes flattened rows and deletes."""

    def __init__(self, folder: Path | None = None, **options: Any) -> None:
        store = None if folder is None else SchemaStore(persistence=SchemaDirectory(str(folder)))
        self._decoder = opening.open_decoder(
            "debezium", {"flattened": "true"} | options, schemas=store
        )

    def events(self, value: Any, topic: str, key: Any = KEY, headers: Any = ()) -> list[Event]:
        return self._decoder.decode(message(value, key, topic=topic, headers=headers))

    def place(self, value: Any, topic: str, key: Any = KEY, headers: Any = ()) -> Any:
        (event,) = self.events(value, topic, key, headers)
        assert isinstance(event, RowChange), event
        assert (value is None) == (event.op == "delete")
        return event.table.database, event.table.schema, event.table.table

    def refuses(self, topic: str, key: Any = KEY, headers: Any = ()) -> None:
        text = error_of(self.events(None, topic, key, headers))
        assert "table of a delete without value is not certain" in text
        for mend in ("add.headers", "mode=rewrite", "schemaStore", "flattenedTable=topic"):
            assert mend in text
        assert topic in text


TOPICS = {
    # The connector wrote _ for other characters.
    "a_b": ("p.shop.a_b", {"__table": "a b", "__db": "shop"}, ("shop", None, "a b")),
    "schema": (
        "p.s_x.t",
        {"__table": "t", "__db": "d", "__schema": "s x"},
        ("d", "s x", "t"),
    ),
    # Topics of PostgreSQL have no database.
    "postgres": (
        "p.public.t_x",
        {"__table": "t_x", "__db": "d", "__schema": "public"},
        ("d", "public", "t_x"),
    ),
    # A point in the table's name.
    "dots": ("p.shop.a.b", {"__table": "a.b", "__db": "shop"}, ("shop", None, "a.b")),
    # Names that only the topic has.
    "plain": ("p.shop.order_items", {}, ("shop", None, "order_items")),
}


@pytest.mark.parametrize("case", TOPICS)
def test_a_delete_has_the_table_of_its_topics_rows(case: str) -> None:
    topic, names, place = TOPICS[case]
    decoder = Decoder()
    # Without a row, it could be another table's.
    decoder.refuses(topic)
    assert decoder.place({"id": 1, **names}, topic) == place
    assert decoder.place(None, topic) == place


def test_a_header_or_a_field_names_the_table() -> None:
    topic, names, place = TOPICS["schema"]
    headers = tuple((name, value.encode()) for name, value in names.items())
    assert Decoder().place(None, topic, headers=headers) == place
    decoder = Decoder()
    decoder.place({"id": 1, **names}, topic)
    assert decoder.place(None, topic, headers=headers[:1]) == place
    # That of a row of another table.
    decoder.refuses(topic, headers=(("__table", b"other"),))


@pytest.mark.parametrize("headers", [(), (("__debezium.context.connectorName", b"mysql"),)])
def test_a_topic_may_tell_the_table(headers: Any) -> None:
    assert Decoder().place(None, "p.shop.orders", headers=headers) == ("shop", None, "orders")
    named = Decoder(flattenedDatabase="d").place(None, "p.public.orders", headers=POSTGRES)
    assert named == ("d", "public", "orders")


def test_a_topic_of_postgres_tells_no_database() -> None:
    Decoder().refuses("p.public.orders", headers=POSTGRES)
    decoder = Decoder()
    assert decoder.place({"id": 1}, "p.public.orders", headers=POSTGRES)[-1] == "orders"
    assert decoder.place(None, "p.public.orders", headers=POSTGRES)[-1] == "orders"


def test_a_router_changes_topics() -> None:
    """Rows of one table say nothing about others of the topic."""
    decoder = Decoder()
    decoder.place({"id": 1, "__db": "d", "__table": "a"}, "p.d.all")
    decoder.refuses("p.d.all")
    assert decoder.place(None, "p.d.all", headers=(("__table", b"a"),)) == ("d", None, "a")
    decoder.place({"id": 1, "__db": "d", "__table": "all"}, "p.d.all")
    decoder.refuses("p.d.all")
    # The rows of a single table, whatever its topic.
    known = Decoder(defaultTable="d.orders")
    known.place({"id": 1, "__db": "d", "__table": "orders"}, "orders-v1")
    assert known.place(None, "orders-v1") == ("d", None, "orders")
    known.place({"id": 1, "__db": "d", "__table": "others"}, "orders-v1")
    known.refuses("orders-v1")


def test_the_key_of_a_router_names_the_table() -> None:
    decoder = Decoder()
    for table in ("t 1", "t_2"):
        decoder.place(row(after=KEY, source={"table": table}), "prefix.shop.all")
    for name, table in (("prefix.shop.t_1", "t 1"), ("prefix.shop.t_2", "t_2")):
        key = KEY | {"__dbz__physicalTableIdentifier": name}
        assert decoder.place(None, "prefix.shop.all", key) == ("shop", None, table)
    decoder.refuses("prefix.shop.all")


def test_the_topic_may_name_all() -> None:
    topic, names, _ = TOPICS["schema"]
    decoder = Decoder(flattenedTable="topic", flattenedDatabase="d")
    place = ("d", "s_x", "t")
    assert decoder.place(None, topic) == place
    assert decoder.place({"id": 1, **names}, topic) == place


@pytest.mark.parametrize("case", TOPICS)
def test_the_schema_store_keeps_the_tables(case: str, tmp_path: Path) -> None:
    topic, names, place = TOPICS[case]
    Decoder(tmp_path).place({"id": 1, **names}, topic)
    assert Decoder(tmp_path).place(None, topic) == place
    # Those of another topic.
    Decoder(tmp_path).refuses(topic + "_")
    another = Decoder(tmp_path)
    another.place({"id": 1, "__db": "d", "__table": "another"}, topic)
    another.refuses(topic)


def test_a_damaged_store_ends_the_read(tmp_path: Path) -> None:
    topic, names, _ = TOPICS["schema"]
    Decoder(tmp_path).place({"id": 1, **names}, topic)
    (file,) = tmp_path.glob("_flattened-tables/*/*")
    file.write_bytes(b"[1]")
    with pytest.raises(Exception, match="damaged file of its tables"):
        Decoder(tmp_path).events(None, topic)


def _of_postgres(only: str, folder: Path) -> list[Event]:
    """The events of a real topic's rows, or of its deletes."""
    messages = [
        each
        for each in framed_messages(SET)
        if each.topic == ODD_TOPIC and (each.value is None) == (only == "deletes")
    ]
    store = SchemaStore(persistence=SchemaDirectory(str(folder)))
    with offline_registry(SET) as server:
        options = {"flattened": "true", "schema.registry.url": server.url}
        decoder = opening.open_decoder("debezium", options, schemas=store)
        return [event for each in messages for event in decoder.decode(each)]


def test_deletes_of_a_real_topic(tmp_path: Path) -> None:
    place = ("cdc", "Ünï Schema", ODD)
    deletes = _of_postgres("deletes", tmp_path)
    assert deletes
    assert all("not certain" in error_of([event]) for event in deletes)
    for only in ("rows", "deletes"):
        events = _of_postgres(only, tmp_path)
        assert events
        assert {event.table.name for event in events if isinstance(event, RowChange)} == {place}
        assert all(isinstance(event, RowChange) for event in events)


def test_a_delete_without_topic_is_an_error() -> None:
    decoder = opening.open_decoder("debezium", {"flattened": "true"})
    assert "not certain" in error_of(decoder.decode(Message(b'{"id":1}', None)))
