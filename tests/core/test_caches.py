"""Caches by bytes: order of eviction, and bounds."""

from __future__ import annotations

from cdcfmt_core.caches import Cache, text_size
from cdcfmt_toolkit.plans import Variants


def test_least_recently_used_entry_is_evicted_first() -> None:
    cache: Cache[str, int] = Cache(100)
    for number, key in enumerate("abcd"):
        assert cache.add(key, number, 25) == number
    assert cache.get("a") == 0
    cache.add("e", 4, 25)
    assert [cache.get(key) for key in "abcde"] == [0, None, 2, 3, 4]
    assert (len(cache), cache.bytes) == (4, 100)


def test_single_oversized_value_is_kept() -> None:
    cache: Cache[str, int] = Cache(100)
    cache.add("a", 1, 10)
    cache.add("b", 2, 1000)
    assert (cache.get("a"), cache.get("b"), cache.bytes) == (None, 2, 1000)
    cache.add("c", 3, 10)
    assert (cache.get("b"), cache.get("c"), cache.bytes) == (None, 3, 10)
    cache.clear()
    assert (cache.get("c"), cache.bytes) == (None, 0)


def test_new_value_replaces_the_value_of_its_key() -> None:
    cache: Cache[str, int] = Cache(100)
    cache.add("a", 1, 60)
    cache.add("a", 2, 50)
    assert (cache.get("a"), cache.bytes, len(cache)) == (2, 50, 1)


def test_variants_of_a_key_are_bounded_in_number_and_bytes() -> None:
    variants: Variants[str, int] = Variants(3, max_bytes=100)
    for number in range(5):
        variants.add("a", number, 10)
    assert (variants.of("a"), variants.bytes) == ([2, 3, 4], 30)
    variants.add("a", 5, 85)
    assert (variants.of("a"), variants.bytes) == ([4, 5], 95)
    variants.add("b", 6, 10)
    assert (variants.of("a"), variants.of("b"), variants.of("c")) == ((), [6], ())


def test_text_lengths_count() -> None:
    assert text_size("x" * 5_000_000, None, b"key") > 5_000_000
