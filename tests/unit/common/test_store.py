"""Files of the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.common.store import digest_of, stored


def test_all_are_made_if_one_is_missing(tmp_path: Path) -> None:
    places = tmp_path / "cache" / "a", tmp_path / "cache" / "b"
    made: list[str] = []

    def make(first: Path, second: Path) -> None:
        made.append("both")
        first.write_text(f"first {len(made)}")
        second.write_text(f"second {len(made)}")

    for _ in range(2):
        stored(make, *places)
    assert made == ["both"]
    places[0].unlink()
    stored(make, *places)
    assert [place.read_text() for place in places] == ["first 2", "second 2"]


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    def make(place: Path) -> None:
        place.write_text("half")
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        stored(make, tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_names_and_contents_count(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for path in (one, other):
        path.write_text("same")
    digests = {digest_of(["a"]), digest_of([b"b"]), digest_of(["a", "b"]), digest_of(["a"], [one])}
    assert len({*digests, digest_of(["a"], [other]), digest_of(["ab"])}) == 6
