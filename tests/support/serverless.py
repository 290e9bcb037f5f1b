"""Sessions that refuse what serverless computes refuse, in the texts of Databricks.

Of its documents: no JVM, SparkContext or RDD; no cache; settings apart from a few; no trigger but
availableNow.  What pyspark itself calls goes on: these are refused to cdcfmt.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest
from pyspark import SparkContext
from pyspark.errors import AnalysisException, PySparkAttributeError
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.session import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

SETTINGS = frozenset({"spark.sql.session.timeZone", "spark.sql.shuffle.partitions"})
"""Of those that the documents allow, the ones that sync or its tests set."""


def _of_cdcfmt() -> bool:
    """Whether a call comes from cdcfmt, two frames above."""
    return str(sys._getframe(2).f_globals.get("__name__", "")).startswith("pyspark_cdcfmt")


def _refused(what: str) -> NoReturn:
    raise AnalysisException(f"[NOT_SUPPORTED_WITH_SERVERLESS] {what} is not supported")


def _attribute(name: str, own: Any) -> property:
    def get(self: Any) -> Any:
        if _of_cdcfmt():
            raise PySparkAttributeError(f"[JVM_ATTRIBUTE_NOT_SUPPORTED] {name} is not supported")
        return own.fget(self) if isinstance(own, property) else self.__dict__[name]

    def set_(self: Any, value: Any) -> None:
        self.__dict__[name] = value

    return property(get, set_)


def _method(name: str, own: Callable[..., Any], allowed: Callable[..., bool]) -> Any:
    def call(self: Any, *args: Any, **how: Any) -> Any:
        if _of_cdcfmt() and not allowed(*args, **how):
            _refused(name)
        return own(self, *args, **how)

    return call


def _never(*args: Any, **how: Any) -> bool:
    return False


def _is_allowed_setting(name: str, *args: Any) -> bool:
    return name in SETTINGS


def _is_available_now(**how: Any) -> bool:
    return how == {"availableNow": True}


@contextmanager
def serverless() -> Iterator[None]:
    """Refuse to cdcfmt, as long as the body runs, what serverless computes refuse."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("sparkContext", "_jvm"):
            own = SparkSession.__dict__.get(name)
            patch.setattr(SparkSession, name, _attribute(name, own), raising=False)
        for name in ("persist", "cache", "unpersist", "checkpoint", "localCheckpoint"):
            patch.setattr(DataFrame, name, _method(name, getattr(DataFrame, name), _never))
        for name in ("set", "get", "unset"):
            own = getattr(RuntimeConfig, name)
            patch.setattr(RuntimeConfig, name, _method(name, own, _is_allowed_setting))
        own = DataStreamWriter.trigger
        patch.setattr(DataStreamWriter, "trigger", _method("trigger", own, _is_available_now))
        for name in ("rdd", "_jdf"):
            own = DataFrame.__dict__.get(name)
            patch.setattr(DataFrame, name, _attribute(name, own), raising=False)
        make = SparkContext.getOrCreate.__func__  # type: ignore[attr-defined]

        def context(cls: Any, conf: Any = None) -> Any:
            if _of_cdcfmt():
                raise PySparkAttributeError("[JVM_ATTRIBUTE_NOT_SUPPORTED] no SparkContext")
            return make(cls, conf)

        patch.setattr(SparkContext, "getOrCreate", classmethod(context))
        yield
