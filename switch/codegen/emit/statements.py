"""Primitives of actions and parsers as C statements, one statement per primitive, and whole actions of them."""

from __future__ import annotations

from collections.abc import Callable

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json.model import Primitive
from gradbed.switch.bmv2_json.reader import MalformedProgram
from gradbed.switch.codegen.emit.extern_statements import ExternStatements
from gradbed.switch.codegen.emit.probes import Access, Site, array_accesses

_JUMPS = ("_jump", "_jump_if_zero")


class Statements(ExternStatements):
    """Emits primitives. The C text refers to sw, p, phv, and data for the arguments of the action at hand."""

    # ---- Primitives by name ----

    def primitive(self, primitive: Primitive) -> str:
        """One C statement, empty for what does nothing. Jumps are the caller's."""
        op, parameters = primitive.op, primitive.parameters
        if op in ("assert", "assume") and len(parameters) == 1:
            return self.statement(lambda: self._assert(op, parameters[0], primitive.source))
        first = parameters[0] if parameters else None
        if isinstance(first, ex.ExternInstance):
            return self.statement(lambda: self._method(op, first, parameters[1:]))
        handler, count = self._handler(op)
        if handler is None:
            raise MalformedProgram(f"BMv2 JSON: primitive '{op[:60]}' is not supported")
        if len(parameters) != count:
            raise MalformedProgram(f"BMv2 JSON: primitive '{op}' takes {count} parameters, got {len(parameters)}")
        return self.statement(lambda: handler(*parameters))

    def _handler(self, op: str) -> tuple[Callable[..., str] | None, int]:
        handlers: dict[str, tuple[Callable[..., str], int]] = {
            "assign": (self.assign, 2),
            "assign_VL": (self.assign_variable, 2),
            "assign_header": (self._assign_header, 2),
            "assign_union": (self._assign_union, 2),
            "assign_header_stack": (self._assign_stack, 2),
            "assign_union_stack": (self._assign_stack, 2),
            "add_header": (self._add_header, 1),
            "remove_header": (self._remove_header, 1),
            "push": (lambda stack, count: self._shift_stack("push", stack, count), 2),
            "pop": (lambda stack, count: self._shift_stack("pop", stack, count), 2),
            "register_read": (self._read_register, 3),
            "register_write": (self._register_write, 3),
            "count": (self._count, 2),
            "execute_meter": (self._execute_meter, 3),
            "modify_field_with_hash_based_offset": (self._hash, 4),
            "modify_field_rng_uniform": (self._random, 3),
            "mark_to_drop": (self._drop, 1),
            "clone_ingress_pkt_to_egress": (self._clone, 2),
            "clone_egress_pkt_to_egress": (self._clone, 2),
            "resubmit": (lambda fields: self._request("resubmit", fields), 1),
            "recirculate": (lambda fields: self._request("recirculate", fields), 1),
            "truncate": (self._truncate, 1),
            "generate_digest": (self._digest, 2),
            "log_msg": (self._log, 2),
            "exit": (lambda: "return 1;", 0),
        }
        return handlers.get(op, (None, 0))

    # ---- Whole actions ----

    def body(
        self, primitives: tuple[Primitive, ...], site: Callable[[int], Site], drop: Callable[[int], int] | None = None
    ) -> list[str]:
        """An action's statements. `exit` returns 1 from the function that they are put in. site: of a primitive.
        drop: the first number of a mark_to_drop (switch/bmv2_json/drop_sites.py), where packets are dropped."""
        targets = {self._jump_target(p, len(primitives)) for p in primitives if p.op in _JUMPS}
        backward = any(
            p.op in _JUMPS and self._jump_target(p, len(primitives)) <= i for i, p in enumerate(primitives)
        )
        lines = ["uint32_t jumps = 0;"] if backward else []
        for index, primitive in enumerate(primitives):
            if index in targets:
                lines.append(f"at_{index}:;")
            if primitive.op in _JUMPS:
                lines.extend(self._probes.at(site(index)))
                lines.append(self._jump(primitive, index, len(primitives)))
            else:
                lines.extend(self._probed(primitive, site(index)))
            if primitive.op == "mark_to_drop" and drop is not None:
                lines.append(f"sw->drop_site = {drop(index)}u + sw->drop_caller;")
        if len(primitives) in targets:
            lines.append(f"at_{len(primitives)}:;")
        return lines

    def _probed(self, primitive: Primitive, site: Site) -> list[str]:
        """A primitive's statement, with the probes around it."""
        text = self.primitive(primitive)
        statement = [text] if text else []
        if not self._probes.recording:
            return statement
        if primitive.op == "exit":
            return [*self._probes.at(site), *statement]
        accesses = array_accesses(primitive)
        before = [self._access(site, access) for access in accesses]
        after = self._probes.accessed(site) if any(a.writes for a in accesses) else []
        return [*before, *statement, *after, *self._probes.at(site)]

    def _access(self, site: Site, access: Access) -> str:
        number = self._index[access.kind][access.name]
        return self.statement(lambda: self._probes.access(site, access, number, self.values.index(access.index)))

    def _jump_target(self, primitive: Primitive, count: int) -> int:
        target = primitive.parameters[-1] if primitive.parameters else None
        if not isinstance(target, ex.Constant) or not target.value >= 0:
            raise MalformedProgram(f"BMv2 JSON: {primitive.op} needs a constant target")
        return min(target.value, count)

    def _jump(self, primitive: Primitive, index: int, count: int) -> str:
        target = self._jump_target(primitive, count)
        # A loop that the packet does not end is ended for it.
        guard = "" if target > index else "if (++jumps > GB_MAX_JUMPS) return 0; "
        go = f"{{ {guard}goto at_{target}; }}"
        if primitive.op == "_jump":
            return go
        if len(primitive.parameters) != 2:
            raise MalformedProgram("BMv2 JSON: _jump_if_zero takes 2 parameters")
        condition = self._number(primitive.parameters[0])
        return self.statement(lambda: f"if (!{self.values.boolean(ex.NonZero(condition))}) {go}")
