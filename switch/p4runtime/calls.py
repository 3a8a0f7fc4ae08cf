"""What a table entry does: an action with arguments, or a reference to a member, a group or a set of actions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.p4runtime.status import RequestError, invalid
from gradbed.switch.p4runtime.values import Translations, ValueCodec, value_codec


class ActionValue(NamedTuple):
    """An action by its P4Info id, with its arguments in declaration order."""

    action_id: int
    arguments: tuple[int, ...]


class MemberCall(NamedTuple):
    member_id: int


class GroupCall(NamedTuple):
    group_id: int


class WatchPort(NamedTuple):
    """A port as it was written: in the deprecated number field, or as a byte string."""

    kind: str
    port: int


class WeightedCall(NamedTuple):
    call: ActionValue
    weight: int
    watch: WatchPort | None


class ActionSet(NamedTuple):
    """A one-shot group. Mode and semantics are the numbers of the message's enums."""

    actions: tuple[WeightedCall, ...]
    selection_mode: int
    size_semantics: int


AnyCall = ActionValue | MemberCall | GroupCall | ActionSet


class ParameterCodec(NamedTuple):
    parameter_id: int
    name: str
    values: ValueCodec


class ActionCodec:
    """Codec of one action."""

    def __init__(self, name: str, action_id: int, parameters: Sequence[ParameterCodec]) -> None:
        """Take the parameters in declaration order."""
        self.name = name
        self.action_id = action_id
        self._ordered = list(parameters)
        self._parameters = {p.parameter_id: (index, p.name, p.values) for index, p in enumerate(parameters)}

    @property
    def parameter_count(self) -> int:
        return len(self._ordered)

    def decode(self, parameters: Sequence[Any]) -> tuple[int, ...]:
        """Return the arguments, in declaration order, of Action.Param messages in any order. Raises RequestError."""
        if len(parameters) != len(self._ordered):
            raise invalid(f"action {self.name} takes {len(self._ordered)} parameters, got {len(parameters)}")
        arguments: list[int | None] = [None] * len(self._ordered)
        for parameter in parameters:
            known = self._parameters.get(parameter.param_id)
            if known is None:
                raise invalid(f"action {self.name} has no parameter {parameter.param_id}")
            index, name, values = known
            if arguments[index] is not None:
                raise invalid(f"action {self.name}, parameter {name}: given twice")
            try:
                arguments[index] = values.decode(parameter.value)
            except RequestError as error:
                raise RequestError(error.code, f"action {self.name}, parameter {name}: {error.message}") from None
        return tuple(arguments)  # type: ignore[arg-type]

    def encode(self, arguments: Iterable[int], action: Any) -> None:
        action.action_id = self.action_id
        for parameter, value in zip(self._ordered, arguments, strict=True):
            action.params.add(param_id=parameter.parameter_id, value=parameter.values.encode(value))


def action_codecs(info: Any, program: ProgramModel, translations: Translations) -> dict[int, ActionCodec]:
    """Return the codecs of a P4Info's actions by id.

    Raises ValueError where P4Info and BMv2 JSON do not fit together.
    """
    # An action that is also called from a control is there a second time, with its arguments built in.
    all_widths_bits: dict[str, list[list[int]]] = {}
    for in_program in program.actions.values():
        widths = [parameter.width for parameter in in_program.parameters]
        all_widths_bits.setdefault(in_program.name, []).append(widths)
    codecs = {}
    for action in info.actions:
        name = action.preamble.name
        # Compilers drop actions that no table uses from the JSON, and keep them in P4Info.
        known: Sequence[Sequence[int | None]] = all_widths_bits.get(name, [[None] * len(action.params)])
        widths_bits = next((widths for widths in known if len(widths) == len(action.params)), None)
        if widths_bits is None:
            raise ValueError(
                f"action {name!r} has {len(action.params)} parameters in the P4Info, {len(known[0])} in the JSON"
            )
        parameters = [
            ParameterCodec(p.id, p.name, value_codec(p, info.type_info, width_bits, translations))
            for p, width_bits in zip(action.params, widths_bits, strict=True)
        ]
        codecs[action.preamble.id] = ActionCodec(name, action.preamble.id, parameters)
    return codecs
