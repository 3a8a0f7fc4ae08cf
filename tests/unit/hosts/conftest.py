from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.hosts.star import close_stars


@pytest.fixture(autouse=True)
def stars_are_closed() -> Iterator[None]:
    yield
    close_stars()
