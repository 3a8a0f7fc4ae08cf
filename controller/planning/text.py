"""A plan as text for people: one paragraph a switch, entries by table, addresses as addresses."""

from __future__ import annotations

from ipaddress import IPv4Address
from itertools import groupby

from gradbed.controller.planning.plan import (
    CloneSession,
    DecrementTtl,
    DefaultAction,
    Flow,
    FlowAction,
    Lpm,
    Match,
    MeterCell,
    MeterRates,
    MulticastGroup,
    Output,
    Plan,
    Range,
    RegisterValue,
    Replicas,
    SetField,
    SwitchPlan,
    TableEntry,
    Ternary,
)


def plan_text(plan: Plan) -> str:
    """Return the plan of all switches as text, in the plan's order."""
    return "\n".join(switch_text(name, switch) for name, switch in plan.switches.items())


def switch_text(name: str, switch: SwitchPlan) -> str:
    content = (
        _count(len(switch.flows), "flow", "flows")
        if switch.kind == "openflow"
        else _count(len(switch.entries), "entry", "entries")
    )
    lines = [f"{name}: {switch.program} ({switch.kind}), {content}"]
    lines += [f"    {flow_text(flow)}" for flow in switch.flows]
    for table, entries in groupby(switch.entries, key=lambda entry: entry.table):
        lines.append(f"  {table}")
        lines += [f"    {entry_text(entry)}" for entry in entries]
    lines += [f"  {default_text(default)}" for default in switch.defaults]
    lines += [f"  {group_text(group)}" for group in switch.groups]
    lines += [f"  {clone_text(session)}" for session in switch.clones]
    lines += [f"  {register_text(register)}" for register in switch.registers]
    lines += [f"  {meter_text(meter)}" for meter in switch.meters]
    return "\n".join(lines)


def entry_text(entry: TableEntry) -> str:
    """Return fields, action and parameters of one entry on one line."""
    match = ", ".join(f"{_last(field)}={match_text(field, how)}" for field, how in entry.match.items())
    params = ", ".join(f"{name}={_number(name, value)}" for name, value in entry.params.items())
    priority = f" priority {entry.priority}" if entry.priority else ""
    meter = f" {_rates(entry.meter)}" if entry.meter is not None else ""
    watched = "" if entry.watch_port is None else f" while port {entry.watch_port} is up"
    return f"{match or '*'} -> {entry.action}({params}){priority}{meter}{watched}"


def default_text(default: DefaultAction) -> str:
    params = ", ".join(f"{name}={_number(name, value)}" for name, value in default.params.items())
    return f"{default.table} by default -> {default.action}({params})"


def group_text(group: MulticastGroup) -> str:
    return f"multicast group {group.id} -> ports {_ports(group)}"


def clone_text(session: CloneSession) -> str:
    cut = f", the first {session.truncate_bytes} bytes" if session.truncate_bytes else ""
    return f"clone session {session.id} -> ports {_ports(session)}{cut}"


def register_text(cell: RegisterValue) -> str:
    return f"{cell.register_name}[{'*' if cell.index is None else cell.index}] = {cell.value}"


def meter_text(cell: MeterCell) -> str:
    return f"{cell.meter_name}[{cell.index}] {_rates(cell.rates)}"


def _ports(replicas: Replicas) -> str:
    shown = [f"{port}" if instance == 1 else f"{port} (instance {instance})" for port, instance in replicas.copies]
    return ", ".join(shown) or "none"


def _rates(rates: MeterRates) -> str:
    return (
        f"metered {rates.committed_rate}/s burst {rates.committed_burst}, "
        f"peak {rates.peak_rate}/s burst {rates.peak_burst}"
    )


def flow_text(flow: Flow) -> str:
    """Return priority, fields and actions of one flow on one line."""
    match = ", ".join(f"{field}={match_text(field, how)}" for field, how in flow.match.items())
    actions = ", ".join(action_text(action) for action in flow.actions)
    return f"{match or '*'} -> {actions or 'drop'} priority {flow.priority}"


def action_text(action: FlowAction) -> str:
    if isinstance(action, SetField):
        return f"{action.set_field}={_number(action.set_field, action.value)}"
    if isinstance(action, DecrementTtl):
        return "dec_ttl"
    return f"output {action.output}" if isinstance(action, Output) else f"group {action.group}"


def match_text(field: str, how: Match) -> str:
    """Return a match as it is usually written: 10.0.0.0/8, 0x10 &&& 0xf0, 5..9, 7."""
    if isinstance(how, Lpm):
        return f"{_number(field, how.value)}/{how.prefix_bits}"
    if isinstance(how, Ternary):
        return f"{how.value:#x} &&& {how.mask:#x}"
    if isinstance(how, Range):
        return f"{how.low}..{how.high}"
    return _number(field, how)


def _number(name: str, value: int) -> str:
    """Return a value as text; since plans have no types, the field's name decides whether it is an address."""
    name = name.lower()
    if "ipv4" in name and name.endswith(("addr", "_src", "_dst")) and value < 1 << 32:
        return str(IPv4Address(value))
    of_mac = "mac" in name or "ethernet" in name or name in ("eth_src", "eth_dst")
    if (of_mac and value < 1 << 48) or (name.endswith("addr") and 1 << 32 <= value < 1 << 48):
        return value.to_bytes(6, "big").hex(":")
    return str(value)


def _last(name: str) -> str:
    return name.removeprefix("hdr.")


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
