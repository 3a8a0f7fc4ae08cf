"""Constructs that BMv2 or its p4c back end treats differently from this switch.

docs/conformance.md has a table of the differences, with the section that decides each. Each row that differs is one
of DIFFERENCES.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.checker import CheckedProgram
from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.symbols import Applicable, ExternInstanceType, Signature

_RECIRCULATE = ("recirculate", "recirculate_preserving_field_list")
_RESUBMIT = ("resubmit", "resubmit_preserving_field_list")
_CLONE = ("clone", "clone3", "clone_preserving_field_list")
_INT_BITS = 32


@dataclass(frozen=True)
class _Program:
    """The program under analysis."""

    nodes: Sequence[s.Node]
    """Nodes of the declarations of the user."""
    blocks: Mapping[str, Sequence[s.Node]]
    """Nodes that a block reaches, by the name of the parameter of V1Switch."""


def warn_of_bmv2_differences(
    checked: CheckedProgram, declarations: Sequence[s.Declaration], reporter: Reporter
) -> None:
    """Report constructs that BMv2 treats differently."""
    nodes = [node for declaration in declarations for node in s.walk(declaration)]
    program = _Program(nodes, dict(_blocks(checked)))
    for warn in DIFFERENCES.values():
        warn(program, reporter)


def _warn(node: s.Node, message: str, reporter: Reporter) -> None:
    reporter.warning(node.loc, message, node.end, category="bmv2")


# ---- What a block reaches ----


def _blocks(checked: CheckedProgram) -> Iterator[tuple[str, list[s.Node]]]:
    target = checked.main.call.target if checked.main is not None and checked.main.call is not None else None
    if target is None:
        return
    for parameter, argument in zip(target.parameters, target.bound, strict=True):
        if argument is not None and isinstance(argument.type, Applicable):
            yield parameter.name, _reached_from(argument.type.signature)


def _reached_from(signature: Signature) -> list[s.Node]:
    """Return all nodes of a parser or control, and of what it applies and calls."""
    found: list[s.Node] = []
    seen, pending = {id(signature.node)}, [signature.node]
    while pending:
        for node in s.walk(pending.pop()):
            found.append(node)
            called = node.target.declaration if isinstance(node, s.Call) and node.target is not None else None
            if isinstance(called, Signature) and id(called.node) not in seen:
                seen.add(id(called.node))
                pending.append(called.node)
    return found


def _calls(nodes: Sequence[s.Node], *names: str) -> list[s.Call]:
    return [n for n in nodes if isinstance(n, s.Call) and n.target is not None and n.target.name in names]


def _reads(nodes: Sequence[s.Node], *fields: str) -> list[s.Member]:
    """Return the reads of fields of the standard metadata."""
    written = {id(node.target) for node in nodes if isinstance(node, s.Assignment)}
    return [
        node
        for node in nodes
        if isinstance(node, s.Member)
        and node.name in fields
        and isinstance(node.base.type, t.Struct)
        and node.base.type.name == "standard_metadata_t"
        and id(node) not in written
    ]


def _clones(nodes: Sequence[s.Node], kind: str) -> list[s.Call]:
    return [call for call in _calls(nodes, *_CLONE) if any(_names(call.arguments[:1], kind))]


def _names(node: object, name: str) -> Iterator[s.Member]:
    return (each for each in s.walk(node) if isinstance(each, s.Member) and each.name == name)


# ---- The differences ----


def _warn_of_lost_ingress_ports(program: _Program, reporter: Reporter) -> None:
    """Warn of metadata that BMv2 resets in clones and in packets that it sends through a block again."""
    ways = (
        ("resubmitted packets", _calls(program.nodes, *_RESUBMIT), ("p", "ig", "eg")),
        ("recirculated packets", _calls(program.nodes, *_RECIRCULATE), ("p", "ig", "eg")),
        # Their parser still has it: BMv2 resets the metadata after it.
        ("clones from ingress", _clones(program.nodes, "I2E"), ("eg",)),
        ("clones from egress", _clones(program.nodes, "E2E"), ("eg",)),
    )
    for block, nodes in program.blocks.items():
        lost = [
            what
            for what, calls, blocks in ways
            if block in blocks and not all(any(_names(call.arguments, "ingress_port")) for call in calls)
        ]
        if lost:
            message = f"on BMv2 the ingress_port of {_listed(lost)} is 0 here: keep it in metadata of a field list"
            for read in _reads(nodes, "ingress_port"):
                _warn(read, message, reporter)


def _listed(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def _warn_of_lost_errors(program: _Program, reporter: Reporter) -> None:
    clones = _clones(program.nodes, "I2E")
    for read in _reads(program.blocks.get("eg", ()), "parser_error", "checksum_error"):
        if not all(any(_names(call.arguments, read.name)) for call in clones):
            _warn(read, f"on BMv2 the {read.name} of clones from ingress is 0 here, as if there was none", reporter)


def _warn_of_prefixes(program: _Program, reporter: Reporter) -> None:
    for node in program.nodes:
        if not isinstance(node, s.KeyElement) or node.match_kind != "lpm":
            continue
        width_bits = _width_bits(node.expression)
        if width_bits % 8:
            message = f"BMv2 matches prefixes of {width_bits} bits wrongly: it takes them for whole bytes"
            _warn(node, message, reporter)


def _warn_of_profile_defaults(program: _Program, reporter: Reporter) -> None:
    for node in program.nodes:
        if not isinstance(node, s.TableDeclaration) or node.property("implementation") is None:
            continue
        default = node.property("default_action")
        if default is not None and isinstance(default.value, s.ActionRef) and default.value.name != "NoAction":
            message = f"BMv2 takes no default action of table '{node.name}': it has an action profile"
            _warn(default.value, message, reporter)


def _width_bits(expression: s.Expression) -> int:
    """Return the width of a number; 0 if its type is not known."""
    type_ = expression.type
    return (t.width_bits(t.representation(type_)) or 0) if type_ is not None else 0


def _warn_of_lost_truncation(program: _Program, reporter: Reporter) -> None:
    """Warn of packets that BMv2 copies without the length that truncate() gave them."""
    multicast = any(isinstance(n, s.Assignment) and _writes(n.target, "mcast_grp") for n in program.nodes)
    recirculated = bool(_calls(program.nodes, *_RECIRCULATE))
    how = [way for way, met in (("multicast", multicast), ("recirculation", recirculated)) if met]
    if how:
        message = f"on BMv2 a packet is whole again after {_listed(how)}, whatever length truncate() gave it before"
        for call in _calls(program.nodes, "truncate"):
            _warn(call, message, reporter)


def _writes(target: s.Expression, field: str) -> bool:
    return isinstance(target, s.Member) and target.name == field


def _warn_of_no_match(program: _Program, reporter: Reporter) -> None:
    """Warn of selects without a case for some value, in programs that use the error."""
    if not any(_reads(nodes, "parser_error") for nodes in program.blocks.values()):
        return
    for node in program.blocks.get("p", ()):
        if isinstance(node, s.Transition) and node.keys is not None and _lacks_cases(node.keys, node.cases):
            _warn(node, "with p4c's JSON a packet that no case fits has no error: write a default", reporter)


def _lacks_cases(keys: Sequence[s.Expression], cases: Sequence[s.SelectCase]) -> bool:
    widths_bits = [_width_bits(key) for key in keys]
    if not all(widths_bits):
        return False
    taken = 0
    for case in cases:
        labels = case.label.items if isinstance(case.label, s.ListExpression) else [case.label]
        wildcard = isinstance(case.label, s.Wildcard)
        sizes = [None] if len(labels) != len(keys) else list(map(_values, labels, widths_bits))
        if wildcard or None in sizes:
            return False
        taken += math.prod(size for size in sizes if size is not None)
    return taken < 1 << sum(widths_bits)


def _values(label: s.Expression, width_bits: int) -> int | None:
    """Return how many values a label takes; None for a value set."""
    if isinstance(label, s.Wildcard):
        return 1 << width_bits
    if isinstance(label, s.Binary) and label.operator in ("&&&", ".."):
        low, high = label.left.value, label.right.value
        if not isinstance(low, int) or not isinstance(high, int):
            return None
        return high - low + 1 if label.operator == ".." else 1 << width_bits - high.bit_count()
    return None if isinstance(label.type, t.SetOf) else 1


def _warn_of_registers(program: _Program, reporter: Reporter) -> None:
    """Warn of indices that are known to be beyond the end."""
    for call in _calls(program.nodes, "read", "write"):
        assert call.target is not None
        receiver = call.target.receiver
        if (
            receiver is None
            or not isinstance(receiver.type, ExternInstanceType)
            or receiver.type.klass.name != "register"
        ):
            continue
        index = call.target.bound[1 if call.target.name == "read" else 0]
        cells = _cells(receiver)
        if cells is not None and index is not None and isinstance(index.value, int) and index.value >= cells:
            message = f"this is beyond the end of the {cells} cells: BMv2 {call.target.name}s other memory"
            _warn(call, message, reporter)


def _cells(register: s.Expression) -> int | None:
    node = register.symbol.node if isinstance(register, s.Name) and register.symbol is not None else None
    built = node.call.target if isinstance(node, s.Instantiation) and node.call is not None else None
    size = built.bound[0] if built is not None and built.bound else None
    return size.value if size is not None and isinstance(size.value, int) else None


def _warn_of_union_stacks(program: _Program, reporter: Reporter) -> None:
    for call in _calls(program.nodes, "push_front", "pop_front"):
        assert call.target is not None
        stack = call.target.receiver.type if call.target.receiver is not None else None
        if isinstance(stack, t.Stack) and isinstance(stack.element, t.Struct) and stack.element.is_union:
            message = "BMv2 leaves header unions that are shifted out of a stack in it, as valid as they were"
            _warn(call, message, reporter)


def _warn_of_wide_ranges(program: _Program, reporter: Reporter) -> None:
    for table in program.nodes:
        if not isinstance(table, s.TableDeclaration):
            continue
        for entry in table.entries or ():
            for label, key in zip(entry.keys, table.key, strict=False):
                width_bits = _width_bits(key.expression)
                if key.match_kind == "range" and isinstance(label, s.Wildcard) and width_bits >= _INT_BITS:
                    message = f"with p4c's JSON a range of {width_bits} bits ends too early: write its end, not _"
                    _warn(label, message, reporter)


DIFFERENCES: Mapping[str, Callable[[_Program, Reporter], None]] = {
    "`ingress_port` of clones, resubmitted and recirculated packets": _warn_of_lost_ingress_ports,
    "`parser_error` and `checksum_error` of clones from ingress to egress": _warn_of_lost_errors,
    "an lpm key whose width is not a multiple of 8 bits": _warn_of_prefixes,
    "`truncate` before multicast or recirculation": _warn_of_lost_truncation,
    "`select` without a matching case": _warn_of_no_match,
    "an access to a register beyond its end": _warn_of_registers,
    "`push_front` and `pop_front` of a stack of header unions": _warn_of_union_stacks,
    "`_` for a range of 32 bits or more in entries": _warn_of_wide_ranges,
    "a default action other than `NoAction` of a table with an action profile": _warn_of_profile_defaults,
}
"""Analyses by their rows of the table in docs/conformance.md."""


# ---- Conditions in actions ----


_ASSIGNMENTS = {"assign_VL", "assign_header", "assign_header_stack"}


def warn_of_conditional_actions(actions: Sequence[ir.LoweredAction], reporter: Reporter) -> None:
    """Warn of statements under conditions in actions, and in what these call, that p4c refuses."""
    found = {
        (each.loc, each.end)
        for action in actions
        for each in _conditional_statements(action.body, _exit(action), False, set())
    }
    for loc, end in sorted(found):
        reporter.warning(
            loc,
            "p4c's back end for BMv2 takes only assignments under a condition in an action, not this",
            end,
            category="unsupported",
        )


def _exit(action: ir.LoweredAction) -> ir.Label | None:
    """Return the label that an exit leaves: that of the whole action."""
    outermost = action.body[0] if action.body else None
    return outermost.label if isinstance(outermost, ir.LoweredBlock) else None


def _conditional_statements(
    body: Sequence[ir.LoweredStatement], exit_: ir.Label | None, is_conditional: bool, left: set[ir.Label]
) -> Iterator[ir.LoweredStatement]:
    """Yield the statements other than assignments that depend on a condition, or on a conditional return before them.

    `left` has the labels of the enclosing blocks that may have been left before.
    """
    for statement in body:
        here = is_conditional or bool(left)
        match statement:
            case ir.LoweredIf():
                yield from _conditional_statements(statement.then, exit_, True, left)
                yield from _conditional_statements(statement.otherwise, exit_, True, left)
            case ir.LoweredBlock() if not _is_loop(statement):
                yield from _conditional_statements(statement.body, exit_, is_conditional, left)
                left.discard(statement.label)
            case ir.Leave():
                if here and statement.label is exit_:
                    yield statement
                left.add(statement.label)
                return
            case ir.LoweredEnd() if here:
                yield statement
            case ir.LoweredPrimitive() if here and statement.op not in _ASSIGNMENTS and statement.op != "exit":
                yield statement


def _is_loop(block: ir.LoweredBlock) -> bool:
    """Return whether the block is a loop, whose conditions are not judged: p4c unrolls loops if it knows them."""
    return any(isinstance(each, ir.Repeat) and each.label is block.label for each in block.body)
