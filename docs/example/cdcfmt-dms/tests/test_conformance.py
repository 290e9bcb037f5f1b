from pathlib import Path

from cdcfmt_testing import CodecTests


class TestDms(CodecTests):
    codec = "dms"
    cases = Path(__file__).parents[1] / "cases"
