"""Delta tables, in a catalog or by path."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
)

from cdcfmt_core.errors import OptionError
from pyspark_cdcfmt.sync.names import quote, text_literal
from pyspark_cdcfmt.sync.targets.protocol import Once

_NEEDS_MAPPING = re.compile(r"[ ,;{}()\n\t=]")
"""Characters that Delta rejects in column names without column mapping."""

_NO_DELTA = (
    "this Spark session has no Delta tables: install delta-spark, and start the session with "
    "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and "
    "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog"
)

_OTHER_CATALOG = (
    "the current catalog, {0}, has no Delta tables by path, as sync's control tables are: start "
    "sync with spark_catalog as the current one (unset spark.sql.defaultCatalog, or USE "
    "spark_catalog), and name the catalog of targets in the option into, as in {0}.bronze.{{table}}"
)

_CONDITIONS_OF_NO_DELTA = (
    "[DATA_SOURCE_NOT_FOUND]",
    "[DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG]",
)

_MAPPING = {"delta.columnMapping.mode": "name"}
_WIDENING = {"delta.enableTypeWidening": "true"}

_FEATURES = {"timestamp_ntz": "timestampNtz", "variant": "variantType"}
"""Delta features to enable on an existing table before it gains a column of such a type."""

_ATTEMPTS = 5
_CONFLICT = re.compile(
    r"\[DELTA_(CONCURRENT_(APPEND|DELETE_\w+|WRITE)|METADATA_CHANGED|PROTOCOL_CHANGED)\b"
)
"""Delta's errors of a write that it has not committed, such as a MERGE beside an OPTIMIZE."""

_INTEGERS: list[tuple[type[DataType], int]] = [
    (ByteType, 3),
    (ShortType, 5),
    (IntegerType, 10),
    (LongType, 20),
]
"""Integer types from narrow to wide, with the decimal digits that Delta needs for them."""


class DeltaTarget:
    """Delta tables of one session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def check_session(self, folder: str) -> None:
        """Check that the session has Delta, by reading a folder that may be missing.

        :raises OptionError: for a session without Delta, or whose catalog has no tables by path.
        """
        try:
            self._spark.read.format("delta").load(folder)
        except (AnalysisException, Py4JJavaError) as error:
            # DATA_SOURCE_NOT_FOUND is a Py4JJavaError.
            if any(name in str(error) for name in _CONDITIONS_OF_NO_DELTA):
                raise OptionError(_NO_DELTA) from error
        try:
            self.schema(f"delta.{quote(folder)}")
        except AnalysisException as error:
            if error.getCondition() == "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY":
                ((name,),) = self._spark.sql("SELECT current_catalog()").collect()
                raise OptionError(_OTHER_CATALOG.format(name)) from error

    def schema(self, table: str) -> StructType | None:
        try:
            return self._spark.table(table).schema
        except AnalysisException as error:
            if error.getCondition() in _MISSING:
                return None
            raise

    def create(
        self,
        table: str,
        columns: StructType,
        *,
        properties: Mapping[str, str] | None = None,
        partition_by: str | None = None,
    ) -> None:
        given = dict(properties or {})
        if any(_NEEDS_MAPPING.search(name) for name in columns.names):
            given |= _MAPPING
        catalog, _, _ = table.rpartition(".")
        if catalog and path_of(table) is None:
            self.run(f"CREATE SCHEMA IF NOT EXISTS {catalog}")
        pairs = _properties(given)
        self.run(
            f"CREATE TABLE IF NOT EXISTS {table} ({_definitions(columns.fields)}) USING delta"
            + (f" PARTITIONED BY ({quote(partition_by)})" if partition_by else "")
            + (f" TBLPROPERTIES ({pairs})" if pairs else "")
        )

    def properties(self, table: str) -> Mapping[str, str]:
        rows = self._spark.sql(f"SHOW TBLPROPERTIES {table}").collect()
        return {row.key: row.value for row in rows}

    def set_properties(self, table: str, properties: Mapping[str, str]) -> None:
        self.run(f"ALTER TABLE {table} SET TBLPROPERTIES ({_properties(properties)})")

    def add_columns(self, table: str, columns: Sequence[StructField]) -> None:
        properties = _features(columns)
        if any(_NEEDS_MAPPING.search(field.name) for field in columns):
            properties |= _MAPPING
        if properties:
            self.set_properties(table, properties)
        self.run(f"ALTER TABLE {table} ADD COLUMNS ({_definitions(columns)})")

    def can_widen(self, old: StructField, new: StructField) -> bool:
        return is_wider(old.dataType, new.dataType)

    def widen(self, table: str, column: StructField) -> None:
        self.set_properties(table, _WIDENING | _features([column]))
        type_ = column.dataType.simpleString()
        self.run(f"ALTER TABLE {table} ALTER COLUMN {quote(column.name)} TYPE {type_}")

    def rename_column(self, table: str, old: str, new: str) -> None:
        self.set_properties(table, _MAPPING)
        self.run(f"ALTER TABLE {table} RENAME COLUMN {quote(old)} TO {quote(new)}")

    def drop_column(self, table: str, name: str) -> None:
        self.set_properties(table, _MAPPING)
        self.run(f"ALTER TABLE {table} DROP COLUMN {quote(name)}")

    def version(self, table: str) -> int:
        (row,) = self._spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()
        version: int = row.version
        return version

    def read(self, table: str) -> DataFrame:
        return self._spark.table(table)

    def append(
        self,
        table: str,
        rows: DataFrame,
        once: Once | None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        writer = rows.write.format("delta").mode("append").options(**(properties or {}))
        if once is not None:
            writer = writer.option("txnAppId", once[0]).option("txnVersion", once[1])
        path = path_of(table)
        if path is None:
            _commit(lambda: writer.saveAsTable(table))
        else:
            _commit(lambda: writer.save(path))

    def merge(self, table: str, rows: DataFrame, on: str, clauses: str) -> None:
        view = f"cdcfmt_sync_{uuid.uuid4().hex}"
        rows.createOrReplaceTempView(view)
        try:
            statement = f"MERGE INTO {table} t USING {view} s ON {on} {clauses}"
            _commit(lambda: rows.sparkSession.sql(statement))
        finally:
            rows.sparkSession.catalog.dropTempView(view)

    def prepare(self, table: str) -> None:
        # To count the files, Delta loads the whole state of the table, and caches it.
        self._spark.sql(f"DESCRIBE DETAIL {table}").collect()

    def run(self, statement: str) -> None:
        _commit(lambda: self._spark.sql(statement))

    def optimize(self, table: str) -> None:
        self.run(f"OPTIMIZE {table}")

    def compact(self, table: str, size: int, *, vacuum: bool) -> None:
        cores = self._spark.sparkContext.defaultParallelism
        # Files to compact, their new size, and tasks of VACUUM, of which Spark starts 10 000.
        sizes = ("optimize.minFileSize", "optimize.maxFileSize")
        changed = {f"spark.databricks.delta.{name}": size for name in sizes}
        changed["spark.sql.sources.parallelPartitionDiscovery.parallelism"] = 4 * cores
        settings = self._spark.conf
        before = {name: settings.get(name, None) for name in changed}
        try:
            for name, value in changed.items():
                settings.set(name, value)
            self.optimize(table)
            if vacuum:
                self.run(f"VACUUM {table}")
        finally:
            for name, text in before.items():
                settings.unset(name) if text is None else settings.set(name, text)


_MISSING = frozenset(
    {"TABLE_OR_VIEW_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_TABLE_NOT_FOUND"}
    | {"DELTA_MISSING_DELTA_TABLE", "SCHEMA_NOT_FOUND", "PATH_NOT_FOUND"}
)


def _commit(write: Callable[[], object]) -> None:
    """Write to a table; again if Delta rejects it for what another session has committed since."""
    for _ in range(_ATTEMPTS - 1):
        try:
            write()
        except Exception as error:
            if not _CONFLICT.search(str(error)):
                raise
        else:
            return
    write()


def path_of(table: str) -> str | None:
    """The path of a table by path; None for a catalog table."""
    if not table.startswith("delta.`"):
        return None
    return table.removeprefix("delta.`").removesuffix("`").replace("``", "`")


def is_wider(old: DataType, new: DataType) -> bool:
    """Whether Delta's type widening supports this change."""
    if old == new:
        return False
    if isinstance(old, FloatType):
        return isinstance(new, DoubleType)
    if isinstance(old, DateType):
        return isinstance(new, TimestampNTZType)
    if isinstance(old, DecimalType):
        return (
            isinstance(new, DecimalType)
            and new.scale >= old.scale
            and new.precision - new.scale >= old.precision - old.scale
        )
    for place, (kind, digits) in enumerate(_INTEGERS):
        if isinstance(old, kind):
            if isinstance(new, DecimalType):
                return new.precision - new.scale >= digits
            if isinstance(new, DoubleType):
                return not isinstance(old, LongType)
            return isinstance(new, tuple(wide for wide, _ in _INTEGERS[place + 1 :]))
    return False


def _features(columns: Iterable[StructField]) -> dict[str, str]:
    types = " ".join(field.dataType.simpleString() for field in columns)
    return {
        f"delta.feature.{feature}": "supported"
        for type_, feature in _FEATURES.items()
        if type_ in types
    }


def _properties(given: Mapping[str, str]) -> str:
    return ", ".join(f"{text_literal(k)} = {text_literal(v)}" for k, v in given.items())


def _definitions(fields: Sequence[StructField]) -> str:
    return ", ".join(map(_definition, fields))


def _definition(field: StructField) -> str:
    comment = field.metadata.get("comment")
    text = f"{quote(field.name)} {field.dataType.simpleString()}"
    return text if comment is None else f"{text} COMMENT {text_literal(comment)}"
