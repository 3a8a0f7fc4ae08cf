from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.controller.entries.planning import Written


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)
