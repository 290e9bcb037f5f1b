from pathlib import Path

from cdcfmt_testing import CodecTests


class TestGoldenGate(CodecTests):
    codec = "goldengate"
    cases = Path(__file__).parents[1] / "cases"
