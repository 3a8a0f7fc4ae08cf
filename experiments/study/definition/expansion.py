"""From a sweep to the combinations that it stands for."""

from __future__ import annotations

import copy
import functools
import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gradbed.experiments.study.definition.model import Sweep


def expand(sweep: Sweep) -> Iterator[dict[str, Any]]:
    """Values by path, the last axis varying fastest; the zip axes are the last. Without any axis, one empty set."""
    in_step = [dict(zip(sweep.zip, values, strict=True)) for values in zip(*sweep.zip.values(), strict=True)]
    for values in itertools.product(*sweep.product.values()):
        chosen = dict(zip(sweep.product, values, strict=True))
        for also in in_step or [{}]:
            yield {**chosen, **also}


def with_values(data: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of nested mappings with values at dotted paths. KeyError(what is no mapping, path)."""
    result = copy.deepcopy(dict(data))
    for path, value in values.items():
        *sections, last = path.split(".")
        inner = result
        for depth, section in enumerate(sections):
            following = inner.setdefault(section, {})
            if not isinstance(following, dict):
                raise KeyError(".".join(sections[: depth + 1]), path)
            inner = following
        inner[last] = value
    return result


def values_at(data: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """The values of nested mappings at dotted paths."""
    return {path: functools.reduce(operator.getitem, path.split("."), data) for path in paths}
