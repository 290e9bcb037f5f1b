"""How the messages of a read are decoded: by the kernel, or by the reference alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import attrs
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from cdcfmt_core.codec import CodecSpec, Projection
from cdcfmt_core.decoding import AUTO
from cdcfmt_core.events import Message
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.layout import Layout
from cdcfmt_core.recognition import CERTAIN_ENOUGH, confidence, recognise
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.texts import open_logger
from pyspark_cdcfmt.kernel.feeding import KernelChunks, is_installed
from pyspark_cdcfmt.kernel.reference import Reference
from pyspark_cdcfmt.kernel.shape import Shape, Unlike
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.rows.policy import ValuePolicy
from pyspark_cdcfmt.rows.record_batches import fixed_bytes
from pyspark_cdcfmt.rows.row_schemas import metadata_fields

logger = open_logger("pyspark_cdcfmt")


@functools.cache
def _warn_once() -> None:
    logger.warning(
        "cdcfmt-kernel is not installed, and decoding takes ten times as long without it: "
        "pip install ./spark_bridge/kernel"
    )


def make_shape(
    schema: StructType,
    options: ReadOptions,
    *,
    projection: Projection,
    event_filter: EventFilter,
    schemas: SchemaStore,
    policy: ValuePolicy,
    inferred: bool,
    fence: int,
) -> Shape:
    """What a read wants of every table."""
    events = options.table is None
    added = schema.fields if events else metadata_fields(options)
    prefix = "" if events else options["metadataPrefix"]
    names = {field.name for field in added}
    metadata = {name: name.removeprefix(prefix) for name in schema.names if name in names}
    return Shape(
        schema=to_arrow_schema(schema, timezone="UTC"),
        metadata=metadata,
        fields=[field for field in schema.fields if field.name not in metadata],
        projection=projection,
        event_filter=event_filter,
        schemas=schemas,
        policy=policy,
        inferred=inferred,
        split=options.splits_keys,
        events=options["imageFormat"] if events else None,
        row_bytes=fixed_bytes(schema),
        fence=fence,
    )


@attrs.frozen
class Opening:
    """Opens the kernel for a read.

    Columns that depend on each table's schema (``includeColumns``) are the reference's.
    """

    options: ReadOptions
    shape: Shape
    reference: Reference

    def open(self, message: Message) -> KernelChunks | None:
        """What decodes messages like this one; None for the reference."""
        if "columns" in self.shape.metadata:
            return None
        codec = self._codec_of(message)
        if codec is None or codec.open_layouts is None:
            return None
        options = self.options.codec
        layouts = codec.open_layouts({each.name: options[each.name] for each in codec.options})
        records = [each for each in layouts if each.avro is not None]
        if not records or message.value is None or message.value.startswith(b"{"):
            records = [each for each in layouts if each.avro is None]
        if records and not is_installed():
            _warn_once()
            return None
        return self._open_kernel(codec, records) if records else None

    @property
    def _guesses(self) -> bool:
        return str(self.options["protocol"]).lower() == AUTO

    def _codec_of(self, message: Message) -> CodecSpec | None:
        if self._guesses:
            return recognise(default_registry().codecs().values(), message)
        protocol = self.reference.decoder.protocol
        return None if protocol is None else default_registry().get_codec(protocol)

    def _recogniser(self, codec: CodecSpec) -> Callable[[Message], bool] | None:
        """What finds messages of the format where others may come."""
        if not self._guesses:
            return None
        return lambda message: confidence(codec, message) >= CERTAIN_ENOUGH

    def _open_kernel(self, codec: CodecSpec, layouts: Sequence[Layout]) -> KernelChunks | None:
        try:
            return KernelChunks(
                codec.name,
                layouts,
                self.shape,
                self.reference,
                self.options["maxMessageBytes"],
                self._recogniser(codec),
            )
        except Unlike as error:
            logger.debug("not by the kernel: %s", error)
            return None
