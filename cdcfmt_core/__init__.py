"""cdcfmt: every change-data-capture message format, as plugins.

This package holds what they share: events, logical types, the hooks, the registry.  It
knows neither Spark nor any wire format.
"""

from cdcfmt_core.codec import API_VERSION, CodecSpec, Decode, DecoderContext
from cdcfmt_core.encoder import Encoder, EncoderContext
from cdcfmt_core.hookspecs import hookimpl
from cdcfmt_core.options import Option
from cdcfmt_core.registry import Registry, default_registry
from cdcfmt_core.types import TypeMap

__all__ = [
    "API_VERSION",
    "CodecSpec",
    "Decode",
    "DecoderContext",
    "Encoder",
    "EncoderContext",
    "Option",
    "Registry",
    "TypeMap",
    "default_registry",
    "hookimpl",
]
