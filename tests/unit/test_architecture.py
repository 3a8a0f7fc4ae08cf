"""The rooms of the house, and who may import whom (docs/architecture.md).

A room is a folder, or a module that stands beside folders. What a room holds inside is judged again: no circles at
any depth. Imports under TYPE_CHECKING are for the type checker alone and make no circle.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parents[2]

MAY_IMPORT = {
    "switch": set[str](),
    "topo": {"switch"},
    "controller": {"topo", "switch"},
    "hosts": {"topo", "switch"},
    "experiments": {"controller", "hosts", "topo", "switch"},
    "cli": {"experiments", "controller", "hosts", "topo", "switch"},
}

ROOMS = {
    "switch": "codegen compiler corpus engine insight nodes p4runtime runtime shims simple_switch stf virtual",
    "topo": "",
