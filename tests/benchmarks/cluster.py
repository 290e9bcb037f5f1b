"""A standalone cluster of two workers, one core each: what one executor reads, and what two do.

``python tests/benchmarks/cluster.py [rounds] [megabytes]``; a file of canal-json as typed changes
and as events into ``noop``, medians of rounds behind those that warm up.  See docs/performance.md,
Sizing.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from samples import SAMPLES
from spark import WARMING, read_cdc, timed, write

_TESTS = Path(__file__).parents[1]
_CASES = ("changes", "events, images as JSON")
_MEMORY = "1g"


def measure(address: str, executors: int, path: str, rounds: int) -> dict[str, float]:
    """Seconds of each case."""
    spark = (
        SparkSession.builder.master(address)
        .config("spark.cores.max", executors)
        .config("spark.executor.memory", _MEMORY)
        .config("spark.scheduler.minRegisteredResourcesRatio", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    seconds: dict[str, list[float]] = {case: [] for case in _CASES}
    for round_ in range(-WARMING, rounds):
        for case in _CASES:
            taken, _ = timed(lambda case=case: read_cdc(spark, path, SAMPLES[0], case))  # type: ignore[misc]
            if round_ >= 0:
                seconds[case].append(taken)
    spark.stop()
    return {case: statistics.median(each) for case, each in seconds.items()}


def main() -> None:
    rounds, megabytes = (int(text) for text in [*sys.argv[1:], *["3", "500"][len(sys.argv) - 1 :]])
    sys.path += [str(_TESTS), str(_TESTS.parent / "spark_bridge" / "tests")]
    from support.spark_daemon import SPARK, cluster

    from pyspark_cdcfmt.local import environment

    os.environ |= environment() | {"SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": "127.0.0.1"}
    os.environ["SPARK_DAEMON_MEMORY"] = "256m"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, changes, _ = write(folder, SAMPLES[0], megabytes)
        with cluster(folder, os.environ, memory="2g") as address:
            found = {count: measure(address, count, path, rounds) for count in (1, 2)}
    print(f"canal-json: {changes:,} row changes")
    for case in _CASES:
        one, two = found[1][case], found[2][case]
        print(
            f"  {case:<28}{changes / one:>10,.0f}/s by one executor,"
            f"{changes / two:>10,.0f}/s by two, {one / two:.2f} x"
        )


if __name__ == "__main__":
    main()
