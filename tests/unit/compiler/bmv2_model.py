"""BMv2 JSON run in plain Python: parser, control flow, actions, deparser, with BMv2's arithmetic.

Just enough of simple_switch to say what a compiled program does to one packet; tables hold the entries that the
program gives them and those put in by `entries`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Field = tuple[str, str]


class ParserFailure(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Bits:
    """A packet being read bit by bit."""

    data: bytes
    position: int = 0

    def peek(self, offset: int, width: int) -> int:
        start = self.position + offset
        if start + width > 8 * len(self.data):
            raise ParserFailure(1)
        value = int.from_bytes(self.data, "big") >> (8 * len(self.data) - start - width)
        return value & ((1 << width) - 1)

    def take(self, width: int) -> int:
        value = self.peek(0, width)
        self.position += width
        return value


@dataclass
class Packet:
    fields: dict[Field, int] = field(default_factory=dict)
    valid: set[str] = field(default_factory=set)
    stack_next: dict[str, int] = field(default_factory=dict)
    exited: bool = False
    calls: list[tuple[str, list[Any]]] = field(default_factory=list)
    payload: bytes = b""


class Bmv2Model:
    """One switch. `entries`: by table name, (values by key position, action name, data)."""

    def __init__(self, program: Json) -> None:
        self.program = program
        self.types = {item["name"]: item for item in program["header_types"]}
        self.headers = {item["name"]: self.types[item["header_type"]] for item in program["headers"]}
        self.stacks = {
            item["name"]: [f"{item['name']}[{index}]" for index in range(item["size"])]
            for item in program["header_stacks"]
        }
        self.unions: dict[str, list[str]] = {}
        names = {item["id"]: item["name"] for item in program["headers"]}
        for union in program["header_unions"]:
            members = [names[number] for number in union["header_ids"]]
            for member in members:
                self.unions[member] = members
        self.actions = {item["id"]: item for item in program["actions"]}
        self.registers = {item["name"]: [0] * item["size"] for item in program["register_arrays"]}
        self.widths = {item["name"]: item["bitwidth"] for item in program["register_arrays"]}
        self.entries: dict[str, list[tuple[list[int], str, list[int]]]] = {}
        self.trace: list[str] = []

    # --- a packet's way ---

    def run(self, data: bytes, **standard_metadata: int) -> tuple[bytes, Packet]:
        """Parser, ingress, egress, deparser; the packet that comes out and what is known of it."""
        packet = Packet()
        for name, value in standard_metadata.items():
            self.set(packet, ("standard_metadata", name), value)
        self.parse(packet, data)
        for pipeline in self.program["pipelines"]:
            packet.exited = False
            self.control(packet, pipeline)
        return self.deparse(packet), packet

    def parse(self, packet: Packet, data: bytes) -> None:
        parser = self.program["parsers"][0]
        states = {state["name"]: state for state in parser["parse_states"]}
        bits = Bits(data)
        name = parser["init_state"]
        try:
            for _ in range(1000):
                if name is None:
                    break
                name = self.state(packet, bits, states[name])
        except ParserFailure as failure:
            self.set(packet, ("standard_metadata", "parser_error"), failure.code)
        assert bits.position % 8 == 0
        packet.payload = data[bits.position // 8 :]

    def state(self, packet: Packet, bits: Bits, state: Json) -> str | None:
        self.trace.append(state["name"])
        for operation in state["parser_ops"]:
            self.parser_operation(packet, bits, operation)
        keys = []
        for key in state["transition_key"]:
            keys.append((self.number(packet, key), self.width_of(key)))
        text = "".join(f"{value & ((1 << width) - 1):0{2 * ((width + 7) // 8)}x}" for value, width in keys)
        for transition in state["transitions"]:
            if transition["type"] == "default":
                return transition["next_state"]
            if transition["type"] != "hexstr":
                continue
            value, mask = int(transition["value"], 16), transition["mask"]
            bits_that_count = int(mask, 16) if mask else -1
            assert len(transition["value"]) == len(text) + 2
            if int(text, 16) & bits_that_count == value & bits_that_count:
                return transition["next_state"]
        raise AssertionError("BMv2 would accept silently")

    def width_of(self, key: Json) -> int:
        if key["type"] == "field":
            header, name = key["value"]
            return 1 if name == "$valid$" else self.format(header, name)[0]
        return self.format(f"{key['value'][0]}[0]", key["value"][-1])[0]

    def parser_operation(self, packet: Packet, bits: Bits, operation: Json) -> None:
        op, parameters = operation["op"], operation["parameters"]
        if op in ("extract", "extract_VL"):
            kind, name = parameters[0]["type"], parameters[0]["value"]
            if kind == "stack":
                position = packet.stack_next.get(name, 0)
                if position >= len(self.stacks[name]):
                    raise ParserFailure(3)
                packet.stack_next[name] = position + 1
                name = self.stacks[name][position]
            for item in self.headers[name]["fields"]:
                width = self.number(packet, parameters[1]["value"]) if item[1] == "*" else item[1]
                packet.fields[name, item[0]] = self.sign(bits.take(width), item)
            self.set_valid(packet, name, True)
        elif op == "set":
            target = tuple(parameters[0]["value"])
            if parameters[1]["type"] == "lookahead":
                self.set(packet, target, bits.peek(*parameters[1]["value"]))
            else:
                self.set(packet, target, self.value(packet, parameters[1], []))
        elif op == "verify":
            if not self.boolean(packet, parameters[0]):
                raise ParserFailure(self.number(packet, parameters[1]))
        elif op == "advance":
            bits.take(self.value(packet, parameters[0], []))
        else:
            assert op == "primitive"
            self.primitive(packet, parameters[0], [])

    def control(self, packet: Packet, pipeline: Json) -> None:
        nodes = {item["name"]: item for item in pipeline["tables"] + pipeline["conditionals"]}
        name = pipeline["init_table"]
        for _ in range(10_000):
            if name is None or packet.exited:
                return
            node = nodes[name]
            self.trace.append(name)
            if "expression" in node:
                name = node["true_next" if self.boolean(packet, node["expression"]) else "false_next"]
            else:
                name = self.table(packet, node)
        raise AssertionError("the control does not end")

    def table(self, packet: Packet, table: Json) -> str | None:
        key = [self.number(packet, {"type": "field", "value": item["target"]}) for item in table["key"]]
        found = self.lookup(table, key)
        hit = found is not None
        if found is None:
            default = table["default_entry"]
            found = default["action_id"], [int(item, 16) for item in default["action_data"]]
        number, data = found
        self.execute(packet, self.actions[number], data)
        following = table["next_tables"]
        if "__HIT__" in following:
            return following["__HIT__" if hit else "__MISS__"]
        return following[self.actions[number]["name"]]

    def lookup(self, table: Json, key: list[int]) -> tuple[int, list[int]] | None:
        numbers = {self.actions[number]["name"]: number for number in table["action_ids"]}
        for values, action, data in self.entries.get(table["name"], []):
            if values == key:
                return numbers[action], data
        for entry in sorted(table.get("entries", []), key=lambda item: item["priority"]):
            if all(map(self.matches, entry["match_key"], key, table["key"])):
                chosen = entry["action_entry"]
                return chosen["action_id"], [int(item, 16) for item in chosen["action_data"]]
        return None

    def matches(self, match: Json, value: int, key: Json) -> bool:
        header, name = key["target"]
        width = 1 if name == "$valid$" else self.format(header, name)[0]
        value &= (1 << width) - 1
        if match["match_type"] == "range":
            return int(match["start"], 16) <= value <= int(match["end"], 16)
        mask = (1 << width) - 1
        if match["match_type"] == "ternary":
            mask = int(match["mask"], 16)
        elif match["match_type"] == "lpm":
            mask &= ~(mask >> match["prefix_length"])
        return value & mask == int(match["key"], 16) & mask

    # --- actions ---

    def execute(self, packet: Packet, action: Json, data: list[int]) -> None:
        assert len(data) == len(action["runtime_data"])
        index = 0
        for _ in range(100_000):
            if index >= len(action["primitives"]):
                return
            primitive = action["primitives"][index]
            op, parameters = primitive["op"], primitive["parameters"]
            index += 1
            if op == "_jump":
                index = self.value(packet, parameters[0], data)
            elif op == "_jump_if_zero":
                if self.value(packet, parameters[0], data) == 0:
                    index = self.value(packet, parameters[1], data)
            else:
                self.primitive(packet, primitive, data)
        raise AssertionError("the action does not end")

    def primitive(self, packet: Packet, primitive: Json, data: list[int]) -> None:
        op, parameters = primitive["op"], primitive["parameters"]
        names = [item["value"] for item in parameters]
        if op == "assign":
            assert parameters[0]["type"] == "field"
            self.set(packet, tuple(names[0]), self.value(packet, parameters[1], data))
        elif op == "add_header":
            if names[0] not in packet.valid:
                for item in self.headers[names[0]]["fields"]:
                    packet.fields[names[0], item[0]] = 0
            self.set_valid(packet, names[0], True)
        elif op == "remove_header":
            self.set_valid(packet, names[0], False)
        elif op == "assign_header":
            self.copy_header(packet, names[0], names[1])
        elif op == "assign_header_stack":
            for target, source in zip(self.stacks[names[0]], self.stacks[names[1]], strict=True):
                self.copy_header(packet, target, source)
        elif op in ("push", "pop"):
            self.shift(packet, self.stacks[names[0]], int(names[1], 16) * (1 if op == "push" else -1))
        elif op == "exit":
            packet.exited = True
        elif op == "register_read":
            index = self.value(packet, parameters[2], data)
            if index < len(self.registers[names[1]]):
                self.set(packet, tuple(names[0]), self.registers[names[1]][index])
        elif op == "register_write":
            index = self.value(packet, parameters[1], data)
            value = self.value(packet, parameters[2], data)
            if index < len(self.registers[names[0]]):
                self.registers[names[0]][index] = value & ((1 << self.widths[names[0]]) - 1)
        elif op == "mark_to_drop":
            self.set(packet, ("standard_metadata", "egress_spec"), 511)
            self.set(packet, ("standard_metadata", "mcast_grp"), 0)
        else:
            packet.calls.append((op, [self.argument(packet, item, data) for item in parameters]))

    def argument(self, packet: Packet, item: Json, data: list[int]) -> Any:
        if item["type"] in ("hexstr", "field", "runtime_data", "expression"):
            return self.value(packet, item, data)
        if item["type"] == "parameters_vector":
            return [self.value(packet, inner, data) for inner in item["value"]]
        return item["value"]

    def copy_header(self, packet: Packet, target: str, source: str) -> None:
        if source not in packet.valid:
            self.set_valid(packet, target, False)
            return
        self.set_valid(packet, target, True)
        for item in self.headers[source]["fields"]:
            packet.fields[target, item[0]] = packet.fields.get((source, item[0]), 0)

    def shift(self, packet: Packet, elements: list[str], by: int) -> None:
        before = [
            (name in packet.valid, {f[0]: packet.fields.get((name, f[0]), 0) for f in self.headers[name]["fields"]})
            for name in elements
        ]
        for index, name in enumerate(elements):
            source = index - by
            there = 0 <= source < len(elements) and before[source][0]
            self.set_valid(packet, name, there)
            if there:
                for key, value in before[source][1].items():
                    packet.fields[name, key] = value

    def set_valid(self, packet: Packet, header: str, valid: bool) -> None:
        if valid:
            for other in self.unions.get(header, []):
                packet.valid.discard(other)
            packet.valid.add(header)
        else:
            packet.valid.discard(header)

    # --- values ---

    def format(self, header: str, name: str) -> tuple[int, bool]:
        item = next(item for item in self.headers[header]["fields"] if item[0] == name)
        return item[1], len(item) > 2 and item[2]

    def sign(self, value: int, item: list[Any]) -> int:
        if len(item) > 2 and item[2] and value >> (item[1] - 1):
            return value - (1 << item[1])
        return value

    def set(self, packet: Packet, target: Field, value: int) -> None:
        width, signed = self.format(*target)
        value &= (1 << width) - 1
        packet.fields[target] = self.sign(value, ["", width, signed])

    def get(self, packet: Packet, target: Field) -> int:
        if target[1] == "$valid$":
            return int(target[0] in packet.valid)
        self.format(*target)
        return packet.fields.get(target, 0)

    def value(self, packet: Packet, item: Json, data: list[int]) -> int:
        """A primitive's parameter."""
        if item["type"] == "runtime_data":
            return data[item["value"]]
        if item["type"] == "expression":
            return int(self.evaluate(packet, item["value"], data))
        return self.number(packet, item)

    def number(self, packet: Packet, item: Json) -> int:
        value = self.evaluate(packet, item, [])
        assert not isinstance(value, bool)
        return value

    def boolean(self, packet: Packet, item: Json) -> bool:
        value = self.evaluate(packet, item, [])
        assert isinstance(value, bool)
        return value

    def evaluate(self, packet: Packet, item: Json, data: list[int]) -> int | bool:
        kind, value = item["type"], item["value"]
        if kind == "hexstr":
            return int(value, 16)
        if kind == "bool":
            return bool(value)
        if kind == "field":
            return self.get(packet, tuple(value))
        if kind == "local":
            return data[value]
        if kind == "stack_field":
            stack, name = value
            return self.get(packet, (self.stacks[stack][packet.stack_next.get(stack, 1) - 1], name))
        assert kind == "expression"
        return self.operation(packet, value, data)

    def operation(self, packet: Packet, item: Json, data: list[int]) -> int | bool:
        op = item["op"]
        if op == "last_stack_index":
            return packet.stack_next.get(item["right"]["value"], 0) - 1
        if op == "?":
            chosen = "left" if self.boolean_of(packet, item["cond"], data) else "right"
            return self.evaluate(packet, item[chosen], data)
        left = None if item["left"] is None else self.evaluate(packet, item["left"], data)
        right = self.evaluate(packet, item["right"], data)
        if op in ("and", "or", "not"):
            assert isinstance(right, bool) and (op == "not" or isinstance(left, bool))
            return {"and": lambda: left and right, "or": lambda: left or right, "not": lambda: not right}[op]()
        if op == "b2d":
            assert isinstance(right, bool)
            return int(right)
        assert not isinstance(right, bool) and (op in ("==", "!=") or not isinstance(left, bool))
        if op == "d2b":
            return right != 0
        if op == "two_comp_mod":
            return self.sign(left & ((1 << right) - 1), ["", right, True])
        if op == "usat_cast":
            return max(0, min((1 << right) - 1, left))
        if op == "sat_cast":
            return max(-(1 << (right - 1)), min((1 << (right - 1)) - 1, left))
        if op == "~":
            return ~right
        return _OPERATIONS[op](left, right)

    def boolean_of(self, packet: Packet, item: Json, data: list[int]) -> bool:
        value = self.evaluate(packet, item, data)
        assert isinstance(value, bool)
        return value

    def deparse(self, packet: Packet) -> bytes:
        deparser = self.program["deparsers"][0]
        for primitive in deparser["primitives"]:
            self.primitive(packet, primitive, [])
        value, width = 0, 0
        for name in deparser["order"]:
            if name in packet.valid:
                for item in self.headers[name]["fields"]:
                    assert item[1] != "*"
                    value = value << item[1] | packet.fields.get((name, item[0]), 0) & ((1 << item[1]) - 1)
                    width += item[1]
        return value.to_bytes(width // 8, "big") + packet.payload


_OPERATIONS: dict[str, Any] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
