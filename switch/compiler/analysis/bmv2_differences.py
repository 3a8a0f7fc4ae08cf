"""What BMv2 does in another way than this switch: docs/conformance.md has the table."""

from __future__ import annotations

from collections.abc import Sequence

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.diagnostics import Reporter

_RECIRCULATE = ("recirculate", "recirculate_preserving_field_list")


def warn_of_bmv2_differences(declarations: Sequence[s.Declaration], reporter: Reporter) -> None:
    """Report where a program touches what BMv2 gets wrong."""
    nodes = [node for declaration in declarations for node in s.walk(declaration)]
    _warn_of_prefixes(nodes, reporter)
    _warn_of_lost_truncation(nodes, reporter)


def _warn_of_prefixes(nodes: Sequence[s.Node], reporter: Reporter) -> None:
    for node in nodes:
        if not isinstance(node, s.KeyElement) or node.match_kind != "lpm" or node.expression.type is None:
            continue
        width_bits = t.width_bits(t.representation(node.expression.type)) or 0
        if width_bits % 8:
            message = f"BMv2 matches prefixes of {width_bits} bits wrongly: it takes them for whole bytes"
            reporter.warning(node.loc, message, node.end, category="bmv2")


def _warn_of_lost_truncation(nodes: Sequence[s.Node], reporter: Reporter) -> None:
    """BMv2 copies a packet for multicast and recirculation without the length that truncate() gave it."""
    names = {node: node.target.name for node in nodes if isinstance(node, s.Call) and node.target is not None}
    truncated = [node for node, name in names.items() if name == "truncate"]
    multicast = any(isinstance(n, s.Assignment) and _writes(n.target, "mcast_grp") for n in nodes)
    recirculated = any(name in _RECIRCULATE for name in names.values())
    if not multicast and not recirculated:
        return
    how = " and ".join(way for way, met in (("multicast", multicast), ("recirculation", recirculated)) if met)
    for call in truncated:
        message = f"on BMv2 a packet is whole again after {how}, whatever length truncate() gave it before"
        reporter.warning(call.loc, message, call.end, category="bmv2")


def _writes(target: s.Expression, field: str) -> bool:
    return isinstance(target, s.Member) and target.name == field
