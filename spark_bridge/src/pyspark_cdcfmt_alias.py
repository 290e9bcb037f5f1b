"""``format("cdcfmt")``, the other name of ``format("cdc")``: Spark takes one name of a module."""

from pyspark_cdcfmt.source import CdcDataSource

__all__ = ["DefaultSource"]


class DefaultSource(CdcDataSource):
    """The class that Spark looks for."""

    @classmethod
    def name(cls) -> str:
        return "cdcfmt"
