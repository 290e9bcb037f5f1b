"""All figures of docs/bench.md, in one run: ``python tests/benchmarks/bench.py`` (``make bench``).

Options: ``--megabytes`` of each file on Spark, ``--rounds``, ``--cores`` (several), ``--samples``
(names of some), ``--keep`` (parts of the last run: decoding, growth, spark, registry).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import decoding
import growth
import report
from samples import SAMPLES

_STARTED = time.monotonic()


def about(rounds: int) -> dict[str, Any]:
    """The machine."""
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "cpu": names[0] if names else platform.machine(),
        "cpus": os.cpu_count(),
        "rounds": rounds,
        "load": round(os.getloadavg()[0], 1),
    }


def progress(text: str) -> None:
    """A line with the minutes and seconds since the start."""
    minutes, seconds = divmod(int(time.monotonic() - _STARTED), 60)
    print(f"[{minutes:3}:{seconds:02}] {text}", flush=True)


def on_spark(
    rounds: int, megabytes: int, cores: int, samples: list[str]
) -> Iterator[list[dict[str, Any]]]:
    """Records of one sample after the other.

    In a process of their own, as a JVM takes its cores when it starts.
    """
    script = Path(__file__).with_name("spark.py")
    arguments = [sys.executable, str(script), str(rounds), str(megabytes), str(cores), *samples]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("["):
                yield json.loads(line)
            elif line.strip():
                progress(line.rstrip())
    if process.returncode:
        raise SystemExit(f"the part on Spark failed with {process.returncode}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, nargs="*", default=[1, 2])
    names = [sample.name for sample in SAMPLES]
    parser.add_argument("--samples", nargs="*", choices=names, default=names)
    parser.add_argument("--keep", nargs="*", default=[])
    parser.add_argument("--add", action="store_true")
    given = parser.parse_args()
    results: dict[str, Any] = {"about": about(given.rounds), "growth": [], "spark": []}
    if given.keep:
        results = json.loads(report.RESULTS.read_text("utf-8"))
        if "decoding" not in given.keep:
            results["about"] = about(given.rounds)
    if "decoding" not in given.keep:
        results["decoding"] = []
        for sample in SAMPLES:
            if sample.name in given.samples:
                progress(f"{sample.name} without Spark")
                results["decoding"] += decoding.measure(sample, given.rounds, given.megabytes // 25)
        progress("lines of a file")
        results["lines"] = decoding.measure_lines(given.rounds)
        report.save(results)
    if "growth" not in given.keep:
        progress("growth")
        results["growth"] = growth.measure(given.rounds)
        report.save(results)
    if "spark" not in given.keep:
        if not given.add:
            results["spark"] = []
        for cores in given.cores:
            progress(f"on Spark, cores: {cores}")
            for records in on_spark(given.rounds, given.megabytes, cores, given.samples):
                measured = {(each["sample"], each["cores"]) for each in records}
                results["spark"] = [
                    each
                    for each in results["spark"]
                    if (each["sample"], each["cores"]) not in measured
                ]
                results["spark"] += [{**each, "rounds": given.rounds} for each in records]
                report.save(results)
    report.write(results)
    if "registry" not in given.keep:
        # Its own process: the JVM of this part has other cores and jars.
        progress("Avro with a schema registry")
        script = Path(__file__).with_name("registry.py")
        megabytes, cores = min(given.megabytes, 100), max(given.cores)
        numbers = map(str, (given.rounds, megabytes, cores))
        subprocess.run([sys.executable, str(script), *numbers], check=True)
        results = json.loads(report.RESULTS.read_text("utf-8"))
    progress("done")
    print(report.table(results))


if __name__ == "__main__":
    main()
