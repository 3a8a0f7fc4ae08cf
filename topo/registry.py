"""Topologies by word, as on the command line: "fat-tree:4", "leaf-spine:4,2,2", "star:9", "bcube:4,1"."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial

import gradbed.topo.optical_electrical  # noqa: F401  # registers its generator
from gradbed.common.errors import UserError
from gradbed.common.plugins import call_plugin, load_plugin, plugins
from gradbed.topo.files import read_topology, unread_file
from gradbed.topo.generators import GENERATORS
from gradbed.topo.graph import Topology
from gradbed.topo.link import UNLIMITED, LinkModel


def usage(word: str) -> str:
    """Return how topologies of a generator are written, for instance "leaf-spine:LEAVES,SPINES,HOSTS"."""
    return _usage(word, GENERATORS[word])


def _usage(word: str, generator: Callable[..., Topology]) -> str:
    # The help of commands has no room for hosts_per_router.
    return f"{word}:{','.join(size.partition('_per_')[0].upper() for size in _sizes(generator))}"


def _sizes(generator: Callable[..., Topology]) -> list[str]:
    """Return the names of a generator's arguments but the last, the model of links."""
    *sizes, _ = inspect.signature(generator).parameters
    return sizes


def parse_topology(text: str, link: LinkModel | None = None, scale_factor: float = 1.0) -> Topology:
    """Return the topology that a text names: a word with sizes, or the path of a file (topo/files).

    Args:
        text: "fat-tree:4", say, or "ring.yaml".
        link: The model of every link that has none of its own.
        scale_factor: Emulated over nominal rate, for links that have rates in the file.

    Raises:
        UserError: The text names none.
    """
    described = read_topology(text, link, scale_factor)
    if described is not None:
        return described
    word, _, arguments = text.strip().partition(":")
    generator: Callable[..., Topology] | None = GENERATORS.get(word)
    build = generator
    if generator is None and word in plugins("topologies"):
        generator = load_plugin("topologies", word)
        build = partial(call_plugin, "topologies", word)
    if generator is None or build is None:
        if unread := unread_file(text):
            raise UserError(unread)
        words = " or ".join([*map(usage, GENERATORS), *plugins("topologies")])
        raise UserError(
            f"unknown topology {text!r}: write {words}, or the path of a file: .yaml, .graphml, "
            ".gml, topology.json, p4app.json or network.py (docs/topologies.md)"
        )
    try:
        sizes = [int(argument) for argument in arguments.split(",")]
    except ValueError:
        sizes = []
    if len(sizes) != len(_sizes(generator)):
        raise UserError(f"topology {text!r} is not of the form {_usage(word, generator)} with whole numbers")
    return build(*sizes, link or UNLIMITED)
