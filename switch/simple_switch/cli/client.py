"""The little of a P4Runtime client that the commands need, with blocking calls to one device, and what all have at
hand."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import grpc
from finsy.proto import p4r, p4r_grpc

from gradbed.common.errors import UserError
from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.bmv2_json.load_expressions import VALID
from gradbed.switch.bmv2_json.model import KeyField, ProgramModel
from gradbed.switch.p4runtime.device_config import bmv2_json
from gradbed.switch.p4runtime.status import update_errors
from gradbed.switch.simple_switch.basics import ask_basics
from gradbed.switch.simple_switch.cli import arguments as values
from gradbed.switch.simple_switch.cli.arguments import CommandError, ProgramCatalogue

ROLE = "simple_switch_CLI"
"""A role of its own, so that it does not compete with the controller. Without a role.config it may do everything."""

TIMEOUT_S = 10.0
_MOST_DEVICE_IDS = 4096


class Refused(Exception):
    """The switch refused a request; the text is its reason."""


class Client:
    """Connects when made. UserError if there is no switch, or it has no program."""

    def __init__(self, address: str, device_id: int | None) -> None:
        self._channel = grpc.insecure_channel(address)
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._requests: queue.Queue[Any] = queue.Queue()
        self._stream: Any = None
        self._election_id: Any = None
        self._address = address
        self.device_id = self._find_device() if device_id is None else device_id
        config = self._config(self.device_id)
        if config is None:
            raise UserError(f"there is no switch with device id {self.device_id} on {address}")
        if not config.HasField("p4info"):
            raise UserError("the switch has no program yet")
        self.p4info = config.p4info
        _name_keys_as_bmv2(self.p4info, config.p4_device_config)

    def close(self) -> None:
        self._requests.put(None)
        self._channel.close()

    def read(self, entity: Any) -> list[Any]:
        """Return the entities of the kind asked for that match."""
        kind = entity.WhichOneof("entity")
        request = p4r.ReadRequest(device_id=self.device_id, entities=[entity])
        try:
            responses = list(self._stub.Read(request, timeout=TIMEOUT_S))
        except grpc.RpcError as error:
            raise Refused(_reason(error)) from None
        return [getattr(found, kind) for response in responses for found in response.entities]

    def basics(self) -> dict[str, Any]:
        """Return ports, numbers and time of the switch (switch/simple_switch/basics.py)."""
        try:
            return ask_basics(self._channel, TIMEOUT_S)
        except grpc.RpcError as error:
            raise Refused(_reason(error)) from None

    def insert(self, entity: Any) -> None:
        self._write(p4r.Update.INSERT, [entity])

    def modify(self, entity: Any) -> None:
        self._write(p4r.Update.MODIFY, [entity])

    def delete(self, *entities: Any) -> None:
        self._write(p4r.Update.DELETE, entities)

    def _write(self, kind: int, entities: Iterable[Any]) -> None:
        self._become_primary()
        updates = [p4r.Update(type=kind, entity=entity) for entity in entities]
        request = p4r.WriteRequest(
            device_id=self.device_id, role=ROLE, election_id=self._election_id, updates=updates
        )
        try:
            self._stub.Write(request, timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            raise Refused(_reason(error)) from None

    def _become_primary(self) -> None:
        if self._election_id is not None:
            return
        # The one that was started last wins.
        election_id = p4r.Uint128(low=time.time_ns())
        arbitration = p4r.MasterArbitrationUpdate(
            device_id=self.device_id, role=p4r.Role(name=ROLE), election_id=election_id
        )
        self._requests.put(p4r.StreamMessageRequest(arbitration=arbitration))
        try:
            # Kept: this client is the primary as long as its stream is open.
            self._stream = self._stub.StreamChannel(self._send())
            response = next((message for message in self._stream if message.HasField("arbitration")), None)
        except grpc.RpcError as error:
            raise Refused(_reason(error)) from None
        if response is None:
            raise Refused("the switch ended the connection")
        if response.arbitration.status.code != 0:
            raise Refused("another simple_switch_CLI is in charge")
        self._election_id = election_id

    def _send(self) -> Iterator[Any]:
        while (request := self._requests.get()) is not None:
            yield request

    def _find_device(self) -> int:
        """Return the smallest device id that the server knows: P4Runtime has no call that lists them."""
        for device_id in range(_MOST_DEVICE_IDS):
            if self._config(device_id) is not None:
                return device_id
        raise UserError("the switch has a large device id: name it with --device-id")

    def _config(self, device_id: int) -> Any:
        """Return what runs on a device; None if there is no such device."""
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=device_id, response_type=p4r.GetForwardingPipelineConfigRequest.ALL
        )
        try:
            return self._stub.GetForwardingPipelineConfig(request, timeout=TIMEOUT_S).config
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND:
                return None
            if error.code() == grpc.StatusCode.UNAVAILABLE:
                raise UserError(f"no switch serves P4Runtime on {self._address}") from None
            raise UserError(f"the switch answers: {error.details()}") from None


def _name_keys_as_bmv2(p4info: Any, device_config: bytes) -> None:
    """Name key fields as BMv2 does: by where they are read (ipv4.dst_addr), not as in the source
    (hdr.ipv4.dst_addr)."""
    program = load_program(bmv2_json(device_config))
    keys = {table.name: table.key for table in program.tables.values()}
    for table in p4info.tables:
        for field, key in zip(table.match_fields, keys.get(table.preamble.name, ()), strict=False):
            field.name = _where_read(key, program)


def _where_read(key: KeyField, program: ProgramModel) -> str:
    match key.value:
        case ex.FieldReference(ex.NamedHeader(header), index):
            return f"{header}.{program.headers[header].type.fields[index].name}"
        case ex.FromBoolean(ex.IsValid(ex.NamedHeader(header))):
            return f"{header}.{VALID}"
    return key.name


def _reason(error: Any) -> str:
    """Return the message of the error, or of the update that failed (P4Runtime specification, "Error Reporting")."""
    failed = [each for each in update_errors(error.trailing_metadata()) if each.canonical_code]
    return str(failed[0].message if failed else error.details())


# ---- What all commands have at hand ----


class Commands:
    """A part of the shell. A method do_NAME is the command NAME, and its documentation is what help says."""

    client: Client
    program: ProgramCatalogue

    def action(self, action: Any, parameters: Sequence[str]) -> Any:
        """Return the Action message of an action and its parameters as text."""
        if len(parameters) != len(action.params):
            raise CommandError(
                f"action {action.preamble.name} needs {len(action.params)} parameters, not {len(parameters)}"
            )
        message = p4r.Action(action_id=action.preamble.id)
        for parameter, text in zip(action.params, parameters, strict=True):
            value = values.encode_text(text, parameter.bitwidth, f"parameter {parameter.name}")
            message.params.add(param_id=parameter.id, value=value)
        return message

    def dump_action(self, message: Any) -> None:
        action = self.program.actions.get(message.action_id)
        widths = {parameter.id: parameter.bitwidth for parameter in action.params}
        shown = ", ".join(values.digits(part.value, widths[part.param_id]) for part in message.params)
        print(f"Action entry: {action.preamble.name} - {shown}")
