"""Whole numbers of files: YAML writes them in notations without Python's limit on digits."""

from __future__ import annotations

import functools
from typing import Any

MOST_BITS = 4096
"""Of a whole number in any file: twice the widest field that P4 programs have here."""


def bounded(value: int) -> int:
    """Return the value. ValueError if it has more than MOST_BITS bits: Python could not print it."""
    if value.bit_length() > MOST_BITS:
        raise ValueError(f"a number of {value.bit_length():,} bits is too large: at most {MOST_BITS:,}")
    return value


@functools.cache
def bounded_loader() -> Any:
    """PyYAML's SafeLoader, which refuses numbers of more than MOST_BITS bits by a yaml.MarkedYAMLError."""
    import yaml  # not in the layer for help texts

    class BoundedLoader(yaml.SafeLoader):  # type: ignore[misc]
        pass

    def integer(loader: Any, node: Any) -> int:
        try:
            return bounded(yaml.SafeLoader.construct_yaml_int(loader, node))
        except ValueError as error:
            raise yaml.constructor.ConstructorError(None, None, _short(str(error)), node.start_mark) from None

    BoundedLoader.add_constructor("tag:yaml.org,2002:int", integer)
    return BoundedLoader


def _short(message: str) -> str:
    """Shorten the message of `int`, which quotes all digits."""
    return message if message.startswith("a number") else "a number is too large or malformed"
