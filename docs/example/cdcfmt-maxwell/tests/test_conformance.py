from pathlib import Path

from cdcfmt_testing import CodecTests


class TestMaxwell(CodecTests):
    codec = "maxwell"
    cases = Path(__file__).parents[1] / "cases"
