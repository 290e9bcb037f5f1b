"""``data`` and ``old`` of an Avro message: maps from column names to a union's values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Image, Op, TableSchema
from cdcfmt_core.toolkit.wire_avro import read_block, read_bytes, read_choice
from cdcfmt_simple.avro import AvroMessage, Layout, check_end
from cdcfmt_simple.avro_raw import RAW_READERS, read_raw_map
from cdcfmt_simple.avro_values import Reader, open_readers
from cdcfmt_simple.checksum import Verifier
from cdcfmt_simple.images import OtherColumns, Row, key_and_wanted
from cdcfmt_simple.instants import Zones
from cdcfmt_simple.plans import Candidates, TablePlans

Values: TypeAlias = dict[str, Any] | None
ReadImage: TypeAlias = Callable[[Layout, bytes, int, str], tuple[dict[str, Any], int]]

_LONG_NAME = 64
"""From so many bytes on, a length has more than one."""
_SAMPLE_BYTES = 64


class AvroPlan:
    """How rows with these columns are read.

    ``steps`` are by the bytes of a column's name and the branch of its value, as they stand
    in the message: one look-up finds both.
    """

    def __init__(self, schema: TableSchema, context: DecoderContext, zones: Zones) -> None:
        self.schema = schema
        self.names = frozenset(schema.column_names)
        self.key_columns, wanted = key_and_wanted(schema, context.projection)
        self._wanted = tuple(
            name for name in schema.column_names if wanted is None or name in wanted
        )
        self._readers = {
            column.name: open_readers(column.type, schema, context, zones)
            if column.name in self._wanted
            else RAW_READERS
            for column in schema.columns
        }
        self._by_name = {_encoded(name): name for name in self._readers}
        self._steps: dict[Layout, dict[bytes, tuple[str, Reader]]] = {}

    def _steps_of(self, layout: Layout) -> dict[bytes, tuple[str, Reader]]:
        return {
            bytes([len(encoded) << 1]) + encoded + bytes([number << 1]): (
                name,
                self._readers[name][branch],
            )
            for encoded, name in self._by_name.items()
            if len(encoded) < _LONG_NAME
            for number, branch in enumerate(layout.branches)
        }

    def read(self, layout: Layout, data: bytes, at: int, field: str) -> tuple[dict[str, Any], int]:
        """The values of an image and where it ends; the error of a bad one names its path.

        :raises OtherColumns: if it has columns that the plan lacks.
        """
        steps = self._steps.get(layout)
        if steps is None:
            steps = self._steps[layout] = self._steps_of(layout)
        values: dict[str, Any] = {}
        name = ""
        count, at = read_block(data, at)
        try:
            while count:
                for _ in range(count):
                    end = at + 2 + (data[at] >> 1)
                    try:
                        name, read = steps[data[at:end]]
                    except KeyError:
                        name, read, end = self._find(layout, data, at)
                    values[name], at = read(data, end)
                name = ""
                count, at = read_block(data, at)
        except DecodeError as error:
            raise error if error.field else error.at(field=_path(field, name)) from error
        except ValueError as error:
            raise DecodeError(
                str(error), field=_path(field, name), sample=data[at : at + _SAMPLE_BYTES]
            ) from error
        return values, at

    def _find(self, layout: Layout, data: bytes, at: int) -> tuple[str, Reader, int]:
        """A column with a long name, or with numbers of more bytes than they need."""
        encoded, at = read_bytes(data, at)
        branch, at = read_choice(data, at, len(layout.branches), "branch")
        name = self._by_name.get(encoded)
        if name is None:
            raise OtherColumns
        return name, self._readers[name][layout.branches[branch]], at

    def in_order(self, values: dict[str, Any]) -> dict[str, Any]:
        """Wanted values in the table's order; the wire has none."""
        if len(values) == len(self.names):
            return {name: values[name] for name in self._wanted}
        return {name: values[name] for name in self._wanted if name in values}


class AvroRows:
    """Reads the rows of Avro messages."""

    def __init__(self, context: DecoderContext, zones: Zones, verifier: Verifier | None) -> None:
        self._before_updates = context.projection.before_updates
        self._verifier = verifier
        self._plans = TablePlans(context, lambda schema: AvroPlan(schema, context, zones), 5_500)

    def read(
        self,
        message: AvroMessage,
        op: Op,
        database: str,
        table: str,
        version: int,
        *,
        complete: bool,
    ) -> Row:
        """The images of a row.

        :raises MissingSchemaError: if its table's schema is not known.
        """
        candidates = self._plans.find(database, table, version)
        plan = candidates.usual or _plan_for(candidates, message)
        try:
            new, old = read_images(message, plan.read)
            size = len(plan.names)
            fits = (new is None or len(new) == size) and (old is None or len(old) == size)
        except (OtherColumns, DecodeError, IndexError):
            # What is wrong must not depend on the rows before.
            fits = False
        if not fits:
            plan = _plan_for(candidates, message)
            new, old = read_images(message, plan.read)
            size = len(plan.names)
        if op == "insert":
            old = None
        elif op == "delete":
            new = None
        if (old if op == "delete" else new) is None:
            raise DecodeError(
                f"a required field of a row event is missing ({message.wire['type']})",
                field="old" if op == "delete" else "data",
            )
        if (
            op == "update"
            and not self._before_updates
            and new is not None
            and old is not None
            and all(old.get(name) == new.get(name) for name in plan.key_columns)
        ):
            old = None
        mismatch = None
        if self._verifier is not None and complete and message.wire.get("checksum") is not None:
            raw_new, raw_old = read_images(message)
            mismatch = self._verifier.verify(message.wire, plan.schema, raw_new, raw_old)
        return (
            plan.schema,
            None if old is None else Image(plan.in_order(old), complete and len(old) == size),
            None if new is None else Image(plan.in_order(new), complete and len(new) == size),
            mismatch,
        )


def read_images(message: AvroMessage, read: ReadImage = read_raw_map) -> tuple[Values, Values]:
    """``data`` and ``old``, which are the last of the message; as the wire has them, or read."""
    layout, data, at = message.layout, message.data, message.at
    images: list[Values] = []
    for field in ("data", "old"):
        image = None
        branch, at = read_choice(data, at, 2, "branch")
        if branch:
            image, at = read(layout, data, at, field)
        images.append(image)
    check_end(data, at)
    return images[0], images[1]


def _plan_for(candidates: Candidates[AvroPlan], message: AvroMessage) -> AvroPlan:
    new, old = read_images(message)
    return candidates.plan_for(frozenset(_names(new, old)))


def _names(new: Mapping[str, Any] | None, old: Mapping[str, Any] | None) -> Any:
    if old is None:
        return new.keys() if new is not None else frozenset()
    if new is None or new.keys() == old.keys():
        return old.keys()
    return new.keys() | old.keys()


def _path(field: str, name: str) -> str:
    return f"{field}.{name}" if name else field


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
