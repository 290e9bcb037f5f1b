"""CloudCanal Json by the compiled kernel: byte for byte that of the reference encoder."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from kernel.test_writing import SKIP, batches_of, golden_messages
from kernel.test_writing_simple import usual_rows
from support.examples import examples
from support.written_rows import check_equal, decoded, event_rows, sent

from cdcfmt_core.events import Message
from cdcfmt_testing.carries import Carries
from cdcfmt_testing.strategies import event_lists

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

COMMON = {**SKIP, "protocol": "cloudcanal-json"}
OPTIONS: list[dict[str, str]] = [
    {"upsertAs": "update"},
    {"binaryEncoding": "hex", "splitKeyUpdates": "true"},
    {"binaryEncoding": "base64", "maxMessageBytes": "900"},
]
GOLDEN = [
    ("canal-json", "tidb-extension"),
    ("simple-json", "default"),
    ("native", "canal/canal_flat"),
]


@pytest.mark.parametrize(("protocol", "name"), GOLDEN)
def test_golden_events(protocol: str, name: str) -> None:
    messages, reading = golden_messages(protocol, name)
    events, found = decoded(messages, **reading)
    rows = event_rows(events, found)
    for options in OPTIONS:
        check_equal(rows, **COMMON, **options)


def test_ordinary_rows_use_the_kernel() -> None:
    rows = usual_rows(1_000)
    _, by_kernel = check_equal(rows, **COMMON)
    assert by_kernel > 990
    expected, _ = sent(rows, by_kernel=False, partitions=3, **COMMON)
    assert sent(rows, by_kernel=True, partitions=3, **COMMON) == (expected, by_kernel)


@settings(deadline=None, max_examples=examples(40), phases=[Phase.generate])
@given(st.data())
def test_generated_events(data: st.DataObject) -> None:
    events = data.draw(event_lists(Carries(), wide=data.draw(st.booleans())))
    rows = event_rows([(Message(None, None, offset=n), e) for n, e in enumerate(events)], None)
    options = data.draw(st.sampled_from(OPTIONS))
    check_equal(batches_of(rows, data.draw(st.integers(1, 10))), **COMMON, **options)
