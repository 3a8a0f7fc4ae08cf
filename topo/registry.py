"""Topologies by word, as on the command line: "fat-tree:4", "leaf-spine:4,2,2", "star:9", "bcube:4,1"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradbed.common.errors import UserError
from gradbed.topo.files import read_topology, unread_file
from gradbed.topo.graph import Topology
from gradbed.topo.link import UNLIMITED, LinkModel
from gradbed.topo.shapes.bcube import bcube
from gradbed.topo.shapes.dragonfly import dragonfly
from gradbed.topo.shapes.fat_tree import fat_tree
from gradbed.topo.shapes.leaf_spine import leaf_spine
from gradbed.topo.shapes.optical_electrical import KIND as OPTICAL_ELECTRICAL
from gradbed.topo.shapes.optical_electrical import optical_electrical
from gradbed.topo.shapes.star import star
from gradbed.topo.shapes.torus import torus


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
    return f"{word}:{','.join(SHAPES[word].parameters)}"


def parse_topology(text: str, link: LinkModel | None = None, scale_factor: float = 1.0) -> Topology:
    """The topology that `text` names, with `link` as the model of every link. UserError if it names none.

    It may also be the path of a file (topo/files). scale_factor: emulated over nominal rate, for links of which the
    file says something itself."""
    described = read_topology(text, link, scale_factor)
    if described is not None:
        return described
    word, _, arguments = text.strip().partition(":")
    shape = SHAPES.get(word)
    if shape is None:
        if unread := unread_file(text):
            raise UserError(unread)
        words = " or ".join(usage(known) for known in SHAPES)
        raise UserError(
            f"unknown topology {text!r}: write {words}, or the path of a file: .yaml, .graphml, "
            ".gml, topology.json, p4app.json or network.py (docs/topologies.md)"
        )
    try:
        sizes = [int(argument) for argument in arguments.split(",")]
    except ValueError:
        sizes = []
    if len(sizes) != len(shape.parameters):
        raise UserError(f"topology {text!r} is not of the form {usage(word)} with whole numbers")
    return shape.build(*sizes, link or UNLIMITED)
