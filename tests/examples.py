"""How many random examples a property gets in each tier of the tests (cli/commands/test.py)."""

from __future__ import annotations

from hypothesis import settings

THOROUGH_EXAMPLES = 100
"""In `./gradbed test --all`; before a commit it is fewer, nightly more (tests/conftest.py)."""


def examples(count: int) -> int:
    """Return the number of examples of a property whose examples are dearer, or cheaper, than most.

    Args:
        count: How many there are in `./gradbed test --all`. In the other tiers there are fewer or more by the same
            factor as of all properties.
    """
    return max(1, count * settings.default.max_examples // THOROUGH_EXAMPLES)
