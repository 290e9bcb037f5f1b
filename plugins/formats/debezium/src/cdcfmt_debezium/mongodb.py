"""Rows of the MongoDB connector: a document as one column, beside its ``_id``.

``before`` and ``after`` are JSON text in MongoDB's extended form, and so is the ``id`` of the key.
Without the document (``capture.mode=change_streams``, a delete without pre-image) an image has the
``_id`` alone; ``extra.updateDescription`` then says what changed.

Source: Debezium MongoDB connector, "Data change events".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Column, Image, Op, RowChange, TableSchema
from cdcfmt_core.types import Json, Text
from cdcfmt_toolkit.wire_json import dumps_exact, loads_exact, text_of

CONNECTOR: Final = "mongodb"
_COLUMNS: Final = (
    # Text, as Spark has no keys that are variants.
    Column("_id", "string", Text(), nullable=False, key=True),
    Column("document", "io.debezium.data.Json", Json(), nullable=True),
)
_UPDATE: Final = "updateDescription"


class Documents:
    """Decodes rows whose images are documents."""

    def __init__(self) -> None:
        self._tables: Cache[tuple[str, str], TableSchema] = Cache()

    def decode(
        self,
        op: Op,
        payload: Mapping[str, Any],
        place: tuple[str, str],
        key: Mapping[str, Any] | None,
    ) -> RowChange:
        """The change of one document, without times and ``extra``.

        :param place: database and collection.
        :raises DecodeError: for a document that is not JSON, and for a row without ``_id``.
        """
        texts = {name: text_of(payload, name) or None for name in ("before", "after")}
        if op not in ("update", "delete"):
            texts["before"] = None
        if op == "delete":
            texts["after"] = None
        images = {
            name: None if text is None else _image(text, name) for name, text in texts.items()
        }
        wanted = "before" if op == "delete" else "after"
        if images[wanted] is None:
            images[wanted] = _without_document(key, images, wanted)
        return RowChange(op, self._table(place), images["before"], images["after"])

    def _table(self, place: tuple[str, str]) -> TableSchema:
        known = self._tables.get(place)
        if known is None:
            known = TableSchema(*place, _COLUMNS, ("_id",))
            self._tables.add(place, known, table_size(known, 0))
        return known


def _image(text: str, field: str) -> Image:
    try:
        document = loads_exact(_utf8(text))
    except ValueError:
        raise DecodeError("is not JSON", field=field, sample=text) from None
    if type(document) is not dict or "_id" not in document:
        raise DecodeError("a document without _id", field=field, sample=text)
    return Image({"_id": _id_text(document["_id"]), "document": text})


def _without_document(
    key: Mapping[str, Any] | None, images: Mapping[str, Image | None], wanted: str
) -> Image:
    """An image of the ``_id`` alone: that of the key, or of the other image."""
    given = (key or {}).get("id")
    if type(given) is str:
        try:
            return Image({"_id": _id_text(loads_exact(_utf8(given)))}, complete=False)
        except ValueError:
            return Image({"_id": given}, complete=False)
    for image in images.values():
        if image is not None:
            return Image({"_id": image.values["_id"]}, complete=False)
    raise DecodeError(
        "a row of MongoDB with neither a document nor a key: its _id is unknown", field=wanted
    )


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _id_text(value: Any) -> str:
    """One text for one ``_id``; keys and documents have blanks in different places."""
    return dumps_exact(value).decode("utf-8", "surrogateescape")


def described(extra: dict[str, Any] | None) -> dict[str, Any] | None:
    """``extra`` without an empty description of an update."""
    if not extra or extra.get(_UPDATE, 0) is not None:
        return extra
    return {name: value for name, value in extra.items() if name != _UPDATE} or None
