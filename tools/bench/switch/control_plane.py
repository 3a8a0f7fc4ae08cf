"""Table writes a second over P4Runtime, and the time from P4 source to a loaded program."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import grpc
from finsy.proto import U128, p4r, p4r_grpc

from gradbed.common.resources import scratch_folder
from gradbed.controller.southbound.p4runtime.schema import Pipeline
from gradbed.emulation.switches.gradbed_switches import SwitchProcess, switch_process_command
from gradbed.experiments.programs import P4_SOURCES
from gradbed.switch.codegen import build_program
from gradbed.switch.engine import Engine
from gradbed.switch.engine_network import NetworkConfig, SwitchConfig
from gradbed.switch.program_cache import compiled_files
from gradbed.switch.runtime.library import runtime_library
from tools.bench.measure import empty_cache

BATCH_UPDATES = 1000
DEVICE_ID = 1
TIMEOUT_S = 60.0


# ---- P4Runtime ----


def writes_per_s(entries: int, rounds: int) -> list[float]:
    """Insert that many routes into p4src/router.p4 in batches, one batch at a time; entries a second, each round.

    Messages are made beforehand; what is timed is sending them and waiting for the answers.
    """
    with scratch_folder("bench") as scratch:
        config = scratch / "switches.json"
        switches = (SwitchConfig(device_id=DEVICE_ID, name="s1"),)
        config.write_text(NetworkConfig(grpc_addresses=("127.0.0.1:0",), switches=switches).model_dump_json())
        process = SwitchProcess(switch_process_command(config), scratch / "switches.log")
        try:
            process.wait_ready()
            address = f"127.0.0.1:{process.grpc_ports[0]}"
            return [_insert(address, entries) for _ in range(rounds)]
        finally:
            process.stop()


def _insert(address: str, entries: int) -> float:
    files = compiled_files(P4_SOURCES / "router.p4", {})
    pipeline = Pipeline.load("router", files.json, files.p4info)
    options = [("grpc.enable_http_proxy", 0)]
    with grpc.insecure_channel(address, options=options) as channel, _primary(channel) as stub:
        # A pipeline of its own for each round: tables start empty.
        stub.SetForwardingPipelineConfig(
            p4r.SetForwardingPipelineConfigRequest(
                device_id=DEVICE_ID,
                election_id=U128.encode(1),
                action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                config=pipeline.config(),
            ),
            timeout=TIMEOUT_S,
        )
        requests = list(_batches(pipeline, entries))
        start = time.perf_counter()
        for request in requests:
            stub.Write(request, timeout=TIMEOUT_S)
        return entries / (time.perf_counter() - start)


@contextlib.contextmanager
def _primary(channel: grpc.Channel) -> Iterator[p4r_grpc.P4RuntimeStub]:
    """Yield the stub of a client that may write."""
    stub = p4r_grpc.P4RuntimeStub(channel)
    requests: SimpleQueue[p4r.StreamMessageRequest | None] = SimpleQueue()
    arbitration = p4r.MasterArbitrationUpdate(device_id=DEVICE_ID, election_id=U128.encode(1))
    requests.put(p4r.StreamMessageRequest(arbitration=arbitration))
    stream = stub.StreamChannel(iter(requests.get, None))
    next(stream)
    try:
        yield stub
    finally:
        requests.put(None)
        stream.cancel()


def _batches(pipeline: Pipeline, entries: int) -> Iterator[p4r.WriteRequest]:
    """Insert routes to as many prefixes of 24 bits."""
    table = next(t for t in pipeline.p4info.tables if t.preamble.alias == "routes").preamble.id
    action = next(a for a in pipeline.p4info.actions if a.preamble.alias == "set_next_hop").preamble.id
    call = p4r.TableAction(action=p4r.Action(action_id=action, params=[p4r.Action.Param(param_id=1, value=b"\x01")]))

    def update(number: int) -> p4r.Update:
        prefix = p4r.FieldMatch.LPM(value=(number << 8).to_bytes(4, "big"), prefix_len=24)
        entry = p4r.TableEntry(table_id=table, match=[p4r.FieldMatch(field_id=1, lpm=prefix)], action=call)
        return p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry))

    for first in range(0, entries, BATCH_UPDATES):
        yield p4r.WriteRequest(
            device_id=DEVICE_ID,
            election_id=U128.encode(1),
            updates=[update(i) for i in range(first, min(first + BATCH_UPDATES, entries))],
        )


# ---- Compiling ----


@dataclass(frozen=True)
class CompileTimes:
    """Seconds from the P4 source to a program loaded into a switch."""

    program: str
    first_s: float
    """With an empty cache."""
    again_s: float
    """From the cache."""


def compile_times() -> list[CompileTimes]:
    """Measure every program in p4src/, with an empty cache and then from it. The runtime library is there already."""
    runtime_library()
    times = []
    for source in sorted(P4_SOURCES.glob("*.p4")):
        with empty_cache():
            times.append(CompileTimes(source.name, _load_s(source), min(_load_s(source) for _ in range(3))))
    return times


def _load_s(source: Path) -> float:
    start = time.perf_counter()
    files = compiled_files(source, {})
    program = build_program(json.loads(files.json.read_text()))
    with Engine(manual_clock=True) as engine:
        engine.add_switch(DEVICE_ID).load(program)
        return time.perf_counter() - start
