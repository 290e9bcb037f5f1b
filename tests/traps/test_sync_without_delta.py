"""A session without Delta: an error before a query starts.

Among the smoke tests Delta's jars are missing, too.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.canal_messages import INSERT, write_lines

from cdcfmt_core.errors import OptionError
from pyspark_cdcfmt.sync import status, sync

ERROR = r"no Delta tables.*spark\.sql\.catalog\.spark_catalog="


@pytest.mark.smoke
def test_the_settings_are_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=ERROR):
        status(spark, f"{tmp_path}/checkpoint")
    with pytest.raises(OptionError, match=ERROR):
        sync(
            spark,
            source={"path": write_lines(tmp_path / "dump.json", INSERT)},
            into=f"{tmp_path}/lake/{{table}}",
            checkpoint=f"{tmp_path}/checkpoint",
        )
