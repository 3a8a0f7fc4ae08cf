"""A case: a random program with its table entries, groups, sessions and frames, all from one seed; and its runs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from gradbed.switch.codegen import BuiltProgram, build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.compiler.diagnostics import CompileError
from gradbed.switch.insight.coverage import Coverage
from gradbed.switch.insight.recorder import InstrumentedProgram, Level, build_instrumented
from gradbed.switch.insight.source import SourceMap
from gradbed.switch.insight.traced_switch import TracedSwitch
from gradbed.switch.reference import ReferenceSwitch
from gradbed.switch.reference.stf import ReferenceTarget
from gradbed.switch.reference.tables import RuntimeEntry, RuntimeTable
from gradbed.switch.reference.values import Value
from gradbed.switch.stf.engine_target import EngineTarget
from gradbed.switch.stf.parser import parse_stf
from gradbed.switch.stf.statements import Add, MeterSetRates, Packet, SetDefault, ValueSetAdd
from tests.fuzz.programs.choices import Choices
from tests.fuzz.programs.frames import Frame, draw_frame
from tests.fuzz.programs.program import Program, draw_program
from tests.fuzz.programs.tables import Matched

FRAMES = 40
OBSERVED_FRAMES = 12
"""Entries are made for keys of so many frames."""
MOST_DRAWN = 10
"""Entries of a table that are drawn with the program; their priorities are at most this."""


@dataclass(frozen=True)
class Case:
    program: Program
    json: dict[str, Any]
    frames: tuple[Frame, ...]


@dataclass(frozen=True)
class Finding:
    """kind: refused (by the compiler), failed (our switch), not read (by the reference), difference."""

    kind: str
    text: str
    frame: int | None = None


@dataclass(frozen=True)
class Observed:
    """outputs: of each frame, (port, frame) in order of ports and bytes.

    direct: counts of a table's entries, in order. digests: the values of each message, in order.
    """

    outputs: list[list[Frame]]
    registers: dict[str, list[int]] = field(default_factory=dict)
    counters: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    direct: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    digests: list[tuple[int, ...]] = field(default_factory=list)

    def difference(self, other: Observed) -> Finding | None:
        """The first one."""
        for number, (ours, theirs) in enumerate(zip(self.outputs, other.outputs, strict=True)):
            if ours != theirs:
                return Finding("difference", f"frame {number}: {_shown(ours)} instead of {_shown(theirs)}", number)
        for what, mine, its in (
            ("register", self.registers, other.registers),
            ("counter", self.counters, other.counters),
            ("direct counter of", self.direct, other.direct),
        ):
            for name in sorted(mine.keys() & its.keys()):
                if mine[name] != its[name]:
                    return Finding("difference", f"{what} {name}: {mine[name]} instead of {its[name]}")
        for number, (one, two) in enumerate(zip_longest(self.digests, other.digests)):
            if one != two:
                return Finding("difference", f"digest {number}: {one} instead of {two}")
        return None


def _shown(outputs: Sequence[Frame]) -> str:
    return ", ".join(f"{port} {frame.hex()}" for port, frame in outputs) or "nothing"


def choices_of(seed: int) -> Choices:
    return Choices(random.Random(f"{seed} program"))


def make_case(
    program: Program, seed: int, folder: Path, numbers: Sequence[int] = range(FRAMES), name: str = "random"
) -> Case:
    """Raises CompileError where the compiler refuses the program."""
    source = folder / f"{name}.p4"
    source.write_text(program.text)
    compiled = compile_p4(source)
    frames = tuple(draw_frame(program, compiled.json, f"{seed} frame {number}") for number in numbers)
    return Case(_with_entries_for(program, frames, seed), compiled.json, frames)


def _with_entries_for(program: Program, frames: Sequence[Frame], seed: int) -> Program:
    """Add entries that some of the frames hit: those that are drawn with the program seldom match anything.

    The interpreter says what the keys of the first frames are.
    """
    seen: dict[str, list[tuple[int, ...]]] = {each.name: [] for each in program.open_tables}
    if not seen:
        return program
    try:
        switch = _reference_of(program)
        for name, keys in seen.items():
            _watch(switch.table(name), keys)
        for port, frame in frames[:OBSERVED_FRAMES]:
            switch.process(port, frame)
    except Exception:
        return program  # what the interpreter cannot read is found when the case is run
    c = Choices(random.Random(f"{seed} entries"))
    entries = list(program.entries)
    for table in program.open_tables:
        taken = {tuple(part.text for part in each.match) for each in entries if each.table == table.name}
        for number, values in enumerate(list(dict.fromkeys(seen[table.name]))[: c.below(5)], MOST_DRAWN + 1):
            entry = table.entry(c, values, number)
            if (text := tuple(part.text for part in entry.match)) not in taken:
                taken.add(text)
                entries.append(entry)
    return replace(program, entries=tuple(entries))


def _watch(table: RuntimeTable, keys: list[tuple[int, ...]]) -> None:
    """Note the key of each lookup, without what only selects a member."""
    find = table.find

    def noted(values: Sequence[Value]) -> RuntimeEntry | None:
        matched = zip(values, table.keys, strict=True)
        keys.append(tuple(int(value) for value, key in matched if key.match != "selector"))
        return find(values)

    table.find = noted  # type: ignore[method-assign]


def case_of(seed: int, folder: Path, frames: int = FRAMES) -> Case:
    return make_case(draw_program(choices_of(seed)), seed, folder, range(frames), f"random_{seed}")


# ---- The control plane in the language of STF files ----


def commands(program: Program) -> list[str]:
    lines = []
    for entry in program.entries:
        parts = [f"{part.key}:{text}" for part in entry.match if (text := _match_text(part)) is not None]
        priority = "" if entry.priority is None else f"{entry.priority} "
        calls = " | ".join(_call(*call) for call in ((entry.action, entry.arguments), *entry.others))
        label = f" = {entry.name}" if entry.name else ""
        lines.append(f"add {entry.table} {priority}{' '.join(parts)} {calls}{label}")
    lines += [f"setdefault {each.table} {_call(each.action, each.arguments)}" for each in program.defaults]
    for rates in program.rates:
        both = " ".join(f"{rate:.12f}:{burst}" for rate, burst in (rates.committed, rates.peak))
        lines.append(f"meter_set_rates {rates.meter} {rates.cell} {both}")
    node = 0
    for group, replicas in program.groups.items():
        lines.append(f"mc_mgrp_create {group}")
        for port, instance in replicas:
            lines += [f"mc_node_create {instance} {port}", f"mc_node_associate {group} {node}"]
            node += 1
    for session, (port, *_) in program.sessions.items():
        lines.append(f"mirroring_add {session} {port}")
    for name, members in program.value_sets.items():
        lines += [f"pvs_add {name} {member}" for member in members]
    return lines


def _match_text(part: Matched) -> str | None:
    match part.kind:
        case "lpm":
            return f"{part.value}/{part.prefix_bits}"
        case "ternary" | "optional":
            return f"{part.value:#x}&&&{part.mask:#x}" if part.mask else None
        case "range":
            return f"{part.value}..{part.high}"
    return str(part.value)


def _call(action: str, arguments: Sequence[tuple[str, int]]) -> str:
    return f"{action}({', '.join(f'{name}:{value}' for name, value in arguments)})"


def stf_text(case: Case, outputs: Sequence[Sequence[Frame]]) -> str:
    """The case as an STF file that expects these outputs."""
    lines = commands(case.program)
    for (port, frame), left in zip(case.frames, outputs, strict=True):
        lines.append(f"packet {port} {frame.hex()}")
        lines += [f"expect {out} {bytes_.hex()} $" for out, bytes_ in left]
    return "\n".join(lines) + "\n"


# ---- Our switch ----


def run(case: Case, optimise: str = "-O1") -> Observed:
    """On our switch, in this process."""
    return run_built(case, build_program(case.json, optimise=optimise))


def run_built(case: Case, built: BuiltProgram) -> Observed:
    with EngineTarget(built, frozenset(range(9))) as switch:
        digests = _set_up(case, switch)
        outputs = []
        for port, frame in case.frames:
            switch.send(Packet(0, port, frame))
            outputs.append(sorted(switch.drain()))
        return _observed(case, switch, outputs, digests)


def run_instrumented(case: Case, folder: Path) -> tuple[Observed, Mapping[int, int]]:
    """With probes, not optimised, without loops made of like statements; and by line how many frames reached it."""
    built: InstrumentedProgram = build_instrumented(case.json)
    coverage = Coverage(built, SourceMap(built.model, [folder]))
    with TracedSwitch(built, Level.POINTS) as traced:
        digests = _set_up(case, traced.target)
        outputs = []
        for port, frame in case.frames:
            passage = traced.send(port, frame)
            coverage.see_packet(passage.records)
            outputs.append(sorted(passage.outputs))
        observed = _observed(case, traced.target, outputs, digests)
    of_files = coverage.report().lines
    lines = next((of for name, of in of_files.items() if name.endswith(built.model.name)), {})
    return observed, {number: line.hits for number, line in lines.items()}


Digests = list[tuple[int, ...]]


def _set_up(case: Case, switch: EngineTarget) -> Digests:
    """Return the list that is to get the values of each digest."""
    model = switch.model
    digests: Digests = []
    named: set[str] = set()
    switch.device.on_digest(lambda _, words: digests.append(_values(case.program, words)))
    for statement in parse_stf("\n".join(commands(case.program)), Path("random.stf")).statements:
        # The compiler leaves out what no packet reaches; a meter stays, also without its table.
        if isinstance(statement, Add | SetDefault) and _full(statement.table, model.tables) is None:
            continue
        if isinstance(statement, Add) and statement.entry is not None:
            named.add(statement.entry)
        if isinstance(statement, MeterSetRates) and isinstance(statement.index, str) and statement.index not in named:
            continue
        if isinstance(statement, ValueSetAdd) and _full(statement.value_set, model.value_sets) is None:
            continue
        if isinstance(statement, MeterSetRates) and _full(statement.meter, model.meters) is None:
            continue
        switch.apply(statement)
    return digests


def _values(program: Program, words: Sequence[int]) -> tuple[int, ...]:
    """Of a message of 64-bit words, the lower one first."""
    values, at = [], 0
    for width in program.digests[words[0]]:
        count = -(-width // 64)
        values.append(sum(word << 64 * i for i, word in enumerate(words[at : at + count])))
        at += count
    assert at == len(words)
    return tuple(values)


def _full(name: str, names: Iterable[str]) -> str | None:
    return next((each for each in names if each.endswith(f".{name}")), None)


def _observed(case: Case, switch: EngineTarget, outputs: list[list[Frame]], digests: Digests) -> Observed:
    state, program = switch.device.state, case.program
    registers = {name: _full(name, switch.model.registers) for name in program.registers}
    counters = {name: _full(name, switch.model.counters) for name in program.counters}
    tables = {name: full for name in program.counted if (full := _full(name, switch.model.tables))}
    handles = {
        name: [*state.tables.initial_handles(full), *(e.handle for e in switch.entries if e.table.name == full)]
        for name, full in tables.items()
    }
    return Observed(
        outputs,
        {name: state.registers.read_all(full) for name, full in registers.items() if full},
        {name: list(state.counters.read_all(full)) for name, full in counters.items() if full},
        {name: [state.tables.count(full, handle) for handle in handles[name]] for name, full in tables.items()},
        digests,
    )


# ---- The specification ----


def _reference_of(program: Program) -> ReferenceSwitch:
    """Return an interpreter with the program's entries."""
    # Port 8, which no program names, is the engine's to its controller.
    switch = ReferenceSwitch(program.text)
    target = ReferenceTarget(switch)
    for statement in parse_stf("\n".join(commands(program)), Path("random.stf")).statements:
        target.apply(statement)
    return switch


def run_reference(case: Case) -> Observed:
    """By an interpreter of the source that shares nothing with compiler and switch."""
    switch = _reference_of(case.program)
    outputs = [sorted(switch.process(port, frame)) for port, frame in case.frames]
    return Observed(
        outputs,
        {name: switch.register(name) for name in case.program.registers},
        {name: switch.counter(name) for name in case.program.counters},
        {name: [(e.packets, e.bytes) for e in switch.table(name).entries] for name in case.program.counted},
        [_unsigned(case.program, values) for _, values in switch.digests],
    )


def _unsigned(program: Program, values: Sequence[int]) -> tuple[int, ...]:
    widths = program.digests[values[0]]
    return tuple(int(value) & (1 << width) - 1 for value, width in zip(values, widths, strict=True))


def judge(make: Callable[[], Case], optimise: str = "-O0") -> tuple[Case | None, Finding | None]:
    """Whether our switch does what the specification says."""
    try:
        case = make()
    except CompileError as error:
        errors = [line for line in str(error).splitlines() if " error: " in line]
        return None, Finding("refused", errors[0] if errors else str(error))
    except Exception as error:
        return None, Finding("failed", f"{type(error).__name__}: {error}")
    try:
        ours = run(case, optimise)
    except Exception as error:
        return case, Finding("failed", f"{type(error).__name__}: {error}")
    try:
        reference = run_reference(case)
    except Exception as error:
        return case, Finding("not read", f"{type(error).__name__}: {error}")
    return case, ours.difference(reference)
