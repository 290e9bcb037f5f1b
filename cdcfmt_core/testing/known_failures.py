"""Known failures of a plugin, which the kits verify."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest


class KnownFailures:
    """Tests of a kit, some of which are known to fail.

    ``known_failures``: reasons by test name.  A listed test must fail, else remove the entry.
    """

    known_failures: ClassVar[Mapping[str, str]] = {}

    @pytest.fixture(autouse=True)
    def _expect_known_failures(self, request: pytest.FixtureRequest) -> None:
        for name in (request.node.name, request.node.originalname):
            if name in self.known_failures:
                reason = self.known_failures[name]
                request.applymarker(
                    pytest.mark.xfail(reason=reason, raises=AssertionError, strict=True)
                )

    def names_of_tests(self) -> set[str]:
        """The names of all tests, including parametrized ones."""
        return {name for name in dir(self) if name.startswith("test_")}

    def test_known_failures_name_tests(self) -> None:
        unknown = sorted(self.known_failures.keys() - self.names_of_tests())
        assert not unknown, f"known_failures names {unknown}, which are not tests"
