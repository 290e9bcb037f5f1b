"""TIMESTAMP texts in real time zones, on days when their clocks changed."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core.types import InvalidValue
from cdcfmt_mysql.temporal import timestamp_parser

SHANGHAI = ZoneInfo("Asia/Shanghai")
NEW_YORK = ZoneInfo("America/New_York")
EIGHT = timezone(timedelta(hours=8))


@pytest.mark.parametrize(
    ("zone", "text", "utc"),
    [
        (UTC, "2023-12-27 12:27:23.123456", "2023-12-27 12:27:23.123456"),
        (ZoneInfo("UTC"), "2023-12-27T12:27:23", "2023-12-27 12:27:23"),
        (EIGHT, "2023-12-27 12:27:23", "2023-12-27 04:27:23"),
        (SHANGHAI, "2023-12-27 12:27:23.123", "2023-12-27 04:27:23.123"),
        (SHANGHAI, "1970-01-01 08:00:01", "1970-01-01 00:00:01"),
        (SHANGHAI, "2038-01-19 11:14:07.999999", "2038-01-19 03:14:07.999999"),
        # Summer time began on 1986-05-04 at 02:00 and ended on 1986-09-14 at 02:00.
        (SHANGHAI, "1986-05-04 01:59:59", "1986-05-03 17:59:59"),
        (SHANGHAI, "1986-05-04 03:00:00.500000", "1986-05-03 18:00:00.500000"),
        (SHANGHAI, "1986-05-05 00:00:00", "1986-05-04 15:00:00"),
        (SHANGHAI, "1986-09-14 00:59:59", "1986-09-13 15:59:59"),
        (SHANGHAI, "1986-09-14 02:00:00", "1986-09-13 18:00:00"),
        (NEW_YORK, "2024-07-01 12:00:00", "2024-07-01 16:00:00"),
        (NEW_YORK, "2024-01-01 12:00:00", "2024-01-01 17:00:00"),
        (NEW_YORK, "2024-03-10 01:59:59.999999", "2024-03-10 06:59:59.999999"),
        (NEW_YORK, "2024-03-10 03:00:00", "2024-03-10 07:00:00"),
        (NEW_YORK, "2024-11-03 00:59:59", "2024-11-03 04:59:59"),
        (NEW_YORK, "2024-11-03 02:00:00", "2024-11-03 07:00:00"),
        (ZoneInfo("America/Caracas"), "2016-05-01 12:00:00", "2016-05-01 16:00:00"),
    ],
)
def test_wall_clock(zone: tzinfo, text: str, utc: str) -> None:
    counts = Counter[str]()
    parse = timestamp_parser(zone, counts)
    for _ in range(2):  # the second time from the cache
        value = parse(text)
        assert value == datetime.fromisoformat(utc).replace(tzinfo=UTC)
        assert isinstance(value, datetime)
        assert value.tzinfo is UTC
    assert not counts


@pytest.mark.parametrize(
    ("zone", "text", "utc", "kind"),
    [
        (SHANGHAI, "1986-05-04 02:00:00", "1986-05-03 18:00:00", "does not exist"),
        (SHANGHAI, "1986-05-04 02:30:00.5", "1986-05-03 18:30:00.5", "does not exist"),
        (SHANGHAI, "1986-09-14 01:30:00", "1986-09-13 16:30:00", "ambiguous"),
        (NEW_YORK, "2024-03-10 02:30:00", "2024-03-10 07:30:00", "does not exist"),
        (NEW_YORK, "2024-11-03 01:00:00", "2024-11-03 05:00:00", "ambiguous"),
        (NEW_YORK, "2024-11-03 01:59:59.999999", "2024-11-03 05:59:59.999999", "ambiguous"),
        # The last hour of a day, and a day that was left out.
        (ZoneInfo("America/Havana"), "2023-11-05 00:30:00", "2023-11-05 04:30:00", "ambiguous"),
        (ZoneInfo("America/Sao_Paulo"), "2018-02-17 23:30:00", "2018-02-18 01:30:00", "ambiguous"),
        (ZoneInfo("Pacific/Apia"), "2011-12-30 12:00:00", "2011-12-30 22:00:00", "does not exist"),
    ],
)
def test_clock_changes_are_counted(zone: ZoneInfo, text: str, utc: str, kind: str) -> None:
    counts = Counter[str]()
    parse = timestamp_parser(zone, counts)
    # Other hours of that day must not mark the day as one without a clock change.
    parse(text[:10] + " 12:34:56")
    counts.clear()
    for _ in range(3):
        assert parse(text) == datetime.fromisoformat(utc).replace(tzinfo=UTC)
    assert counts == {f"timestamp {kind} in {zone}": 3}


@pytest.mark.parametrize("zone", [UTC, EIGHT, SHANGHAI])
@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2023-12-27T04:27:23Z", "2023-12-27 04:27:23"),
        ("2023-12-27T04:27:23.123Z", "2023-12-27 04:27:23.123"),
        ("2023-12-27 04:27:23.123456Z", "2023-12-27 04:27:23.123456"),
        ("2023-12-27T12:27:23+08:00", "2023-12-27 04:27:23"),
        ("2023-12-27T12:27:23.1+08:00", "2023-12-27 04:27:23.1"),
        ("2023-12-27T12:27:23.123456-03:30", "2023-12-27 15:57:23.123456"),
        ("1986-05-04 02:30:00-00:00", "1986-05-04 02:30:00"),
    ],
)
def test_text_with_its_own_zone(zone: tzinfo, text: str, utc: str) -> None:
    counts = Counter[str]()
    assert timestamp_parser(zone, counts)(text) == datetime.fromisoformat(utc).replace(tzinfo=UTC)
    assert not counts


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        *[(zone, "0000-00-00 00:00:00") for zone in (UTC, EIGHT, SHANGHAI)],
        *[(zone, "0000-00-00T00:00:00Z") for zone in (UTC, EIGHT, SHANGHAI)],
        (UTC, "2023-02-30 00:00:00.000000"),
        (EIGHT, "0001-01-01 07:59:59"),
        (SHANGHAI, "0001-01-01 00:00:00"),
        (NEW_YORK, "9999-12-31 23:59:59"),
        (NEW_YORK, "9999-12-31 23:59:59.999999"),
        (UTC, "9999-12-31T23:59:59-01:00"),
        (UTC, "0001-01-01T00:00:00+00:01"),
        (UTC, "2023-02-30T00:00:00+00:00"),
    ],
)
def test_invalid_values(zone: tzinfo, text: str) -> None:
    parse = timestamp_parser(zone, Counter())
    assert [parse(text), parse(text)] == [InvalidValue(text), InvalidValue(text)]


@pytest.mark.parametrize("zone", [UTC, SHANGHAI])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "Z",
        "2023-12-27",
        "2023-12-27Z",
        "2023-12-27 24:00:00",
        "2023-12-27 12:27:23z",
        "2023-12-27 12:27:23ZZ",
        "2023-12-27 12:27:23 Z",
        "2023-12-27 12:27:23+08",
        "2023-12-27 12:27:23+0800",
        "2023-12-27 12:27:23.123+00",
        "2023-12-27 12:27:23.12+0800",
        "2023-12-27 12:27:23+24:00",
        "2023-12-27 12:27:23+08:60",
        "2023-12-27 12:27:23+08:00Z",
        "2023-12-27 12:27:23.1234567",
        "2023-12-27 12:27:23 Asia/Shanghai",
    ],
)
def test_bad_timestamps(zone: tzinfo, text: str) -> None:
    with pytest.raises(ValueError, match=r"not a (timestamp|datetime)"):
        timestamp_parser(zone, Counter())(text)


ZONES = ["Asia/Shanghai", "America/New_York", "Australia/Lord_Howe", "Africa/Monrovia"]
ZONES += ["America/St_Johns", "Europe/Dublin", "Africa/Casablanca", "Pacific/Apia"]
PARSERS = {name: timestamp_parser(ZoneInfo(name), Counter()) for name in ZONES}


@given(st.sampled_from(ZONES), st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)))
def test_same_as_the_zone_itself(name: str, value: datetime) -> None:
    expected = value.replace(tzinfo=ZoneInfo(name)).astimezone(UTC)
    assert PARSERS[name](value.isoformat(" ")) == expected


@given(st.sampled_from(ZONES), st.datetimes(datetime(1960, 1, 1), datetime(2037, 1, 1)))
def test_instants_round_trip(name: str, value: datetime) -> None:
    instant = value.replace(tzinfo=UTC)
    local = instant.astimezone(ZoneInfo(name))
    if not local.fold:
        assert PARSERS[name](local.replace(tzinfo=None).isoformat(" ")) == instant


@given(st.sampled_from(ZONES), st.text() | st.text("0123456789-:. TZ+", max_size=33))
def test_any_text(name: str, text: str) -> None:
    try:
        value = PARSERS[name](text)
    except ValueError:
        return
    assert isinstance(value, (datetime, InvalidValue))
