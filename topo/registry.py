"""Topologies by word, as on the command line: "fat-tree:4", "leaf-spine:4,2,2", "star:9", "bcube:4,1"."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gradbed.common.errors import UserError
from gradbed.common.plugins import call_plugin, load_plugin, plugins
from gradbed.topo.files import read_topology, unread_file
from gradbed.topo.graph import Topology
from gradbed.topo.link import UNLIMITED, LinkModel
from gradbed.topo.optical_electrical import KIND as OPTICAL_ELECTRICAL
from gradbed.topo.optical_electrical import optical_electrical
from gradbed.topo.shapes import bcube, dragonfly, fat_tree, leaf_spine, star, torus


@dataclass(frozen=True)
class Shape:
    """A family of topologies: how its parameters (whole numbers) are called, and what builds a member."""

    parameters: tuple[str, ...]
    build: Callable[..., Topology]


SHAPES = {
    "fat-tree": Shape(("K",), fat_tree),
    "leaf-spine": Shape(("LEAVES", "SPINES", "HOSTS"), leaf_spine),
    "star": Shape(("HOSTS",), star),
    "dragonfly": Shape(("GROUPS", "ROUTERS", "HOSTS"), dragonfly),
    "torus": Shape(("X", "Y", "Z"), torus),
    OPTICAL_ELECTRICAL: Shape(("N",), optical_electrical),
    "bcube": Shape(("N", "K"), bcube),
}


def usage(word: str) -> str:
    """How a shape is written, for instance "leaf-spine:LEAVES,SPINES,HOSTS"."""
    return _written(word, SHAPES[word])


def _written(word: str, shape: Shape) -> str:
    return f"{word}:{','.join(shape.parameters)}"


def _shape(word: str) -> Shape | None:
    """One of ours, or of another package: a function of whole numbers and, last, the model of links.

    Raises:
        UserError: The plug-in cannot be loaded.
    """
    if word in SHAPES or word not in plugins("topologies"):
        return SHAPES.get(word)
    *sizes, _ = inspect.signature(load_plugin("topologies", word)).parameters
    return Shape(tuple(size.upper() for size in sizes), partial(call_plugin, "topologies", word))


def parse_topology(text: str, link: LinkModel | None = None, scale_factor: float = 1.0) -> Topology:
    """The topology that `text` names, with `link` as the model of every link. UserError if it names none.

    It may also be the path of a file (topo/files). scale_factor: emulated over nominal rate, for links of which the
    file says something itself."""
    described = read_topology(text, link, scale_factor)
    if described is not None:
        return described
    word, _, arguments = text.strip().partition(":")
    shape = _shape(word)
    if shape is None:
        if unread := unread_file(text):
            raise UserError(unread)
        words = " or ".join([*map(usage, SHAPES), *plugins("topologies")])
        raise UserError(
            f"unknown topology {text!r}: write {words}, or the path of a file: .yaml, .graphml, "
            ".gml, topology.json, p4app.json or network.py (docs/topologies.md)"
        )
    try:
        sizes = [int(argument) for argument in arguments.split(",")]
    except ValueError:
        sizes = []
    if len(sizes) != len(shape.parameters):
        raise UserError(f"topology {text!r} is not of the form {_written(word, shape)} with whole numbers")
    return shape.build(*sizes, link or UNLIMITED)
