"""A plugin of pytest that keeps finsy's tests which ask for a P4Runtime server."""

import pytest

FIXTURE = "p4rt_server_target"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect all others."""
    kept = [item for item in items if FIXTURE in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
