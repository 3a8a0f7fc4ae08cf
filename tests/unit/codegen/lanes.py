"""A gradient program in miniature: hundreds of lanes that are read, added and written, one primitive each."""

from __future__ import annotations

from tests.unit.codegen import program_maker as make

SLOTS = 16


def lane_program(lanes: int, grouped: bool = True) -> make.Json:
    """A header `key` (slot, pad), then `lanes` of int32, which are added to registers and answered with the sums.

    grouped: all reads, then all sums, then all writes; else lane by lane.
    """
    maker = make.ProgramMaker()
    maker.add_header("key", [["slot", 16, False], ["index", 32, False], ["pad", 16, False]])
    maker.add_header("lanes", [[f"lane{i}", 32, True] for i in range(lanes)])
    maker.add_header("meta", [[f"sum{i}", 32, False] for i in range(lanes)], metadata=True)
    for i in range(lanes):
        maker.add("register_arrays", name=f"slot_{i}", size=SLOTS, bitwidth=32)
    maker.states = [make.state("start", [make.extract("key"), make.extract("lanes")])]
    maker.order = ["key", "lanes"]
    slot = make.field("key", "slot")
    steps = []
    for i in range(lanes):
        lane, register = make.field("lanes", f"lane{i}"), make.named("register_array", f"slot_{i}")
        total = make.field("meta", f"sum{i}")
        added = make.operation("&", make.operation("+", total, lane), make.constant(0xFFFFFFFF))
        steps.append(
            [
                make.call("register_read", total, register, slot),
                make.call("assign", total, make.expression(added)),
                make.call("register_write", register, slot, total),
                make.call("assign", lane, make.expression(make.operation("two_comp_mod", total, make.constant(32)))),
            ]
        )
    if grouped:
        maker.run([step[k] for k in range(4) for step in steps])
    else:
        maker.run([primitive for step in steps for primitive in step])
    return maker.json()
