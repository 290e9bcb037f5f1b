"""cdcfmt: every change-data-capture message format, as plugins.

This package holds the common parts: events, logical types, the hooks, the registry.  It depends
on neither Spark nor any wire format.  Python users need only :func:`open_decoder` and
:func:`open_encoder`; a plugin returns a :class:`CodecSpec` from a hook.
"""

from cdcfmt_core.codec import CodecSpec, Decode, DecoderContext
from cdcfmt_core.encoder import Encoder, EncoderContext
from cdcfmt_core.errors import CdcfmtError, DecodeError, EncodeError, OptionError
from cdcfmt_core.events import (
    Column,
    Corrupt,
    Event,
    Heartbeat,
    Image,
    LogicalMessage,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
    Transaction,
    Watermark,
)
from cdcfmt_core.hookspecs import hookimpl
from cdcfmt_core.opening import open_decoder, open_encoder
from cdcfmt_core.options import API_VERSIONS, Option
from cdcfmt_core.registry import Registry, default_registry
from cdcfmt_core.schema_registry import SchemaRegistrySpec
from cdcfmt_core.transport import TransportSpec
from cdcfmt_core.types import LogicalType, TypeMap

__all__ = [
    "API_VERSIONS",
    "CdcfmtError",
    "CodecSpec",
    "Column",
    "Corrupt",
    "Decode",
    "DecodeError",
    "DecoderContext",
    "EncodeError",
    "Encoder",
    "EncoderContext",
    "Event",
    "Heartbeat",
    "Image",
    "LogicalMessage",
    "LogicalType",
    "Message",
    "Option",
    "OptionError",
    "Registry",
    "RowChange",
    "SchemaChange",
    "SchemaRegistrySpec",
    "TableSchema",
    "TableSchemaEvent",
    "Transaction",
    "TransportSpec",
    "TypeMap",
    "Watermark",
    "default_registry",
    "hookimpl",
    "open_decoder",
    "open_encoder",
]
