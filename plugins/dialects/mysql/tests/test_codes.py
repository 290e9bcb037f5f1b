"""Column type codes and flags of the wire."""

from __future__ import annotations

import pytest

from cdcfmt_core.types import (
    Binary,
    Bit,
    Date,
    DateTime,
    Decimal,
    Enum,
    Float,
    Geometry,
    Int,
    Json,
    LogicalType,
    Set,
    Text,
    Time,
    Timestamp,
    Unknown,
    Vector,
    Year,
)
from cdcfmt_mysql import resolve_type
from cdcfmt_mysql.codes import (
    BINARY_FLAG,
    CODE_NAMES,
    TEXT_OR_BINARY_CODES,
    UNSIGNED_FLAG,
    flag_names,
    logical_from_code,
    source_type_from_code,
)


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (0, ()),
        (85, ("BinaryFlag", "GeneratedColumnFlag", "UniqueKeyFlag", "NullableFlag")),
        (46, ("HandleKeyFlag", "GeneratedColumnFlag", "PrimaryKeyFlag", "MultipleKeyFlag")),
        (0x80, ("UnsignedFlag",)),
        (1 << 20, ()),
    ],
)
def test_flag_names(flags: int, names: tuple[str, ...]) -> None:
    assert flag_names(flags) == names


@pytest.mark.parametrize(
    ("code", "logical"),
    [
        (4, Float(32)),
        (5, Float(64)),
        (7, Timestamp()),
        (10, Date()),
        (11, Time()),
        (12, DateTime()),
        (13, Year()),
        (14, Date()),
        (16, Bit()),
        (225, Vector()),
        (245, Json()),
        (246, Decimal()),
        (247, Enum()),
        (248, Set()),
        (255, Geometry()),
        (6, Unknown("null")),
        (99, Unknown("type code 99")),
        (-1, Unknown("type code -1")),
    ],
)
@pytest.mark.parametrize("flags", [None, 0, 65, 193])
def test_types_independent_of_flags(code: int, logical: LogicalType, flags: int | None) -> None:
    assert logical_from_code(code, flags) == logical


@pytest.mark.parametrize(
    ("code", "bits", "either"),
    [
        (1, 8, Int(16)),
        (2, 16, Int(24)),
        (9, 24, Int(32)),
        (3, 32, Int(64)),
        (8, 64, Decimal(20, 0)),
    ],
)
def test_integers(code: int, bits: int, either: LogicalType) -> None:
    # TiCDC sends 65 for a nullable integer and 11 for a primary key.
    for flags in (0, 11, 65):
        assert logical_from_code(code, flags) == Int(bits)
    assert logical_from_code(code, UNSIGNED_FLAG | 65) == Int(bits, signed=False)
    assert logical_from_code(code, None) == either
    if isinstance(either, Int):
        low, high = either.bounds
        assert low <= Int(bits).bounds[0]
        assert high >= Int(bits, signed=False).bounds[1]


@pytest.mark.parametrize("code", sorted(TEXT_OR_BINARY_CODES))
def test_text_or_binary(code: int) -> None:
    assert logical_from_code(code, 64) == Text()
    assert logical_from_code(code, 64 | BINARY_FLAG) == Binary()
    assert logical_from_code(code, None) == Unknown(CODE_NAMES[code])


def test_every_named_code_is_known() -> None:
    unknown = {code for code in CODE_NAMES if isinstance(logical_from_code(code, 0), Unknown)}
    assert unknown == {6}


@pytest.mark.parametrize(
    ("code", "flags", "text"),
    [
        (3, 65, "int"),
        (3, 193, "int unsigned"),
        (246, 193, "decimal unsigned"),
        (4, 193, "float unsigned"),
        (13, 193, "year"),
        (16, 193, "bit"),
        (252, 64, "text"),
        (252, 65, "blob"),
        (253, 65, "varbinary"),
        (254, 65, "binary"),
        (15, None, "varchar/varbinary"),
        (3, None, "int"),
        (99, 0, "type code 99"),
    ],
)
def test_source_types(code: int, flags: int | None, text: str) -> None:
    assert source_type_from_code(code, flags) == text


@pytest.mark.parametrize("flags", [0, 65, 193])
def test_source_types_are_those_of_the_type_map(flags: int) -> None:
    for code in CODE_NAMES.keys() - {6}:
        assert resolve_type(source_type_from_code(code, flags)) == logical_from_code(code, flags)
