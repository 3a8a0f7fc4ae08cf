"""CountMinSketch: what it promises of its estimates, its P4Runtime entries, and the example of docs/externs.md."""

from __future__ import annotations

import math
import random
import re
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finsy.proto import p4d, p4r

from gradbed.common.errors import UserError
from gradbed.switch.codegen import build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.engine_network import InterfaceConfig, NetworkConfig, SwitchConfig
from gradbed.switch.p4runtime.status import BatchError, RequestError, StatusCode
from gradbed.switch.state.externs import EXTERNS, ExternKind
from gradbed.switch.virtual import SimulatedNetwork

ROOT = Path(__file__).parents[4]
PROGRAM = ROOT / "tests/p4/stf/architecture/count_min_sketch.p4"
ROWS, COLUMNS = 4, 64
COUNT, ASK = 1, 2
NETWORK = NetworkConfig(
    switches=(SwitchConfig(device_id=1, name="s1"),),
    interfaces=(InterfaceConfig(device_id=1, port=1, interface="s1-eth1"),),
)
REQUEST = struct.Struct(">BHIII")


def configuration(source: Path, **defines: int) -> Any:
    compiled = compile_p4(source, defines={name: str(value) for name, value in defines.items()})
    return p4r.ForwardingPipelineConfig(p4info=compiled.p4info, p4_device_config=compiled.json_text.encode())


class Sketch:
    """The program on the virtual clock, written and read through P4Runtime."""

    def __init__(self, simulated: SimulatedNetwork, config: Any) -> None:
        self.simulated = simulated
        self.host = simulated.interface(1, 1)
        simulated.set_pipeline(1, config)
        [described] = config.p4info.externs
        self.ids = {each.preamble.alias: each.preamble.id for each in described.instances}
        self.type_id = described.extern_type_id

    def request(self, op: int, key: int, amount: int = 0) -> int:
        """The estimate that comes back."""
        sent = REQUEST.pack(op, key >> 32, key & 0xFFFFFFFF, amount, 0)
        self.host.send(np.frombuffer(sent, np.uint8)[None])
        self.simulated.run_until(None)
        buffer, _ = self.host.receive()
        return int(REQUEST.unpack(bytes(buffer[0][: REQUEST.size]))[-1])

    def entry(self, data: Any = None, name: str = "counted") -> Any:
        entry = p4r.ExternEntry(extern_type_id=self.type_id, extern_id=self.ids[name])
        if data is not None:
            entry.entry.Pack(data)
        return entry

    def write(self, entry: Any, kind: int = p4r.Update.MODIFY) -> None:
        self.simulated.write(1, [p4r.Update(type=kind, entity=p4r.Entity(extern_entry=entry))])

    def read(self, entry: Any) -> list[Any]:
        return [found.extern_entry for found in self.simulated.read(1, [p4r.Entity(extern_entry=entry)])]

    def data(self) -> Any:
        [found] = self.read(self.entry())
        data = p4d.P4Data()
        assert found.entry.Unpack(data)
        return data

    def counts(self) -> np.ndarray:
        return np.array([np.frombuffer(row.bitstring, ">u4") for row in self.data().tuple.members])


@pytest.fixture
def pair() -> Iterator[list[Sketch]]:
    config = configuration(PROGRAM, ROWS=ROWS, COLUMNS=COLUMNS)
    with SimulatedNetwork(NETWORK) as first, SimulatedNetwork(NETWORK) as second:
        yield [Sketch(first, config), Sketch(second, config)]


def traffic(seed: int, packets: int = 600) -> list[tuple[int, int]]:
    """Keys of 48 bits and amounts; some keys come often."""
    rng = random.Random(seed)
    keys = [rng.randrange(1 << 48) for _ in range(200)]
    return [(keys[min(int(rng.paretovariate(0.5)) - 1, 199)], rng.randrange(1, 1500)) for _ in range(packets)]


@pytest.mark.parametrize("seed", range(3))
def test_estimates_are_never_too_low_and_seldom_much_too_high(pair: list[Sketch], seed: int) -> None:
    sketch, true = pair[0], Counter[int]()
    for key, amount in traffic(seed):
        true[key] += amount
        assert sketch.request(COUNT, key, amount) >= true[key]
    counts, total = sketch.counts(), sum(true.values())
    assert counts.shape == (ROWS, COLUMNS)
    assert counts.sum(axis=1).tolist() == [total] * ROWS
    estimates = {key: sketch.request(ASK, key) for key in true}
    assert all(estimates[key] >= true[key] and estimates[key] in counts for key in true)
    far_off = sum(estimates[key] - true[key] > math.e * total / COLUMNS for key in true)
    assert far_off <= 2 * math.exp(-ROWS) * len(true)
    # Asking counted nothing.
    assert (sketch.counts() == counts).all()


def test_keys_that_meet_in_one_row_part_in_another(pair: list[Sketch]) -> None:
    """Of a dozen keys one in a thousand meets others in all four rows; one in six does in a single row."""
    sketch, rng = pair[0], random.Random(3)
    for _ in range(6):
        keys = rng.sample(range(1 << 48), 12)
        for key in keys:
            sketch.request(COUNT, key, 1)
        assert [sketch.request(ASK, key) for key in keys] == [1] * 12
        sketch.write(sketch.entry())


def test_sketches_are_cleared_copied_and_added(pair: list[Sketch]) -> None:
    first, second = pair
    true = Counter[int]()
    for sketch, seed in ((first, 1), (second, 2)):
        for key, amount in traffic(seed, 100):
            true[key] += amount
            sketch.request(COUNT, key, amount)
    both = p4d.P4Data()
    for row in first.counts() + second.counts():
        both.tuple.members.add(bitstring=row.astype(">u4").tobytes())
    second.write(second.entry(both))
    assert second.data() == both
    assert all(second.request(ASK, key) >= count for key, count in true.items())
    second.write(second.entry())
    assert not second.counts().any()
    assert all(second.request(ASK, key) == 0 for key in true)
    # What leads from the loaded program to the present state, as RECONCILE_AND_COMMIT has it.
    second.simulated.write(1, list(first.simulated._target(1).running().export()))
    assert second.data() == first.data() and first.counts().any()


def test_entries_are_found_by_type_and_id(pair: list[Sketch]) -> None:
    sketch = pair[0]
    type_id, ids = sketch.type_id, set(sketch.ids.values())
    for entry in (p4r.ExternEntry(), p4r.ExternEntry(extern_type_id=type_id)):
        assert {each.extern_id for each in sketch.read(entry)} == ids and len(ids) == 2
    assert sketch.read(p4r.ExternEntry(extern_type_id=type_id + 1)) == []
    assert all(each >> 24 == type_id for each in ids)
    unknown = p4r.ExternEntry(extern_type_id=type_id, extern_id=7)
    with pytest.raises(RequestError) as refused:
        sketch.read(unknown)
    assert refused.value.code == StatusCode.NOT_FOUND
    rows = p4d.P4Data()
    rows.tuple.members.add(bitstring=b"short")
    wrong = sketch.entry()
    wrong.entry.Pack(p4r.TableEntry())
    for entry, kind, code in (
        (unknown, p4r.Update.MODIFY, StatusCode.NOT_FOUND),
        (p4r.ExternEntry(extern_type_id=type_id), p4r.Update.MODIFY, StatusCode.INVALID_ARGUMENT),
        (sketch.entry(rows), p4r.Update.MODIFY, StatusCode.INVALID_ARGUMENT),
        (wrong, p4r.Update.MODIFY, StatusCode.INVALID_ARGUMENT),
        (sketch.entry(), p4r.Update.INSERT, StatusCode.INVALID_ARGUMENT),
    ):
        with pytest.raises(BatchError) as failed:
            sketch.write(entry, kind)
        assert [outcome and outcome.code for outcome in failed.value.outcomes] == [code]


@pytest.mark.parametrize("sizes", [(0, 64), (17, 64), (4, 0), (4, (1 << 24) + 1)])
def test_sizes_have_limits(sizes: tuple[int, int]) -> None:
    with pytest.raises(UserError, match=r"of 'counted' is outside 1 to (16|16777216)\n"):
        configuration(PROGRAM, ROWS=sizes[0], COLUMNS=sizes[1])


def test_the_compiler_says_that_bmv2_has_none(tmp_path: Path) -> None:
    messages = [warning.message for warning in compile_p4(PROGRAM).warnings]
    assert messages == ["BMv2 has no extern 'CountMinSketch': this program runs on gradbed's switch only"] * 2
    bare = tmp_path / "bare.p4"
    bare.write_text(PROGRAM.read_text().replace("#include <gradbed.p4>", ""))
    with pytest.raises(UserError, match=r"write #include <gradbed.p4> at the top of the program"):
        compile_p4(bare)


def test_programs_of_others_are_checked() -> None:
    document = compile_p4(PROGRAM).json
    attribute = document["extern_instances"][0]["attribute_values"][0]
    for change, told in (
        ({"value": "0x11"}, "rows of extern 'Counting.counted' is outside 1 to 16"),
        ({"name": "lines"}, "has the attributes lines, columns, a CountMinSketch takes rows, columns"),
    ):
        before = dict(attribute)
        attribute.update(change)
        with pytest.raises(ValueError, match=told):
            build_program(document)
        attribute.update(before)
    document["extern_instances"][0]["type"] = "Bloom"
    with pytest.raises(ValueError, match="extern type 'Bloom' is not supported"):
        build_program(document)


PAGE = (ROOT / "docs/externs.md").read_text()


def example(language: str) -> str:
    return PAGE.partition(f"```{language}\n")[2].partition("```")[0]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The documented ingress in a whole program."""
    source = tmp_path / "heavy.p4"
    source.write_text(
        f"""
#include <core.p4>
#include <v1model.p4>
#include <gradbed.p4>
header ipv4_t {{ bit<32> src; }}
struct headers_t {{ ipv4_t ipv4; }}
struct metadata_t {{}}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {{
    state start {{ packet.extract(hdr.ipv4); transition accept; }}
}}
control Check(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {{ apply {{ }} }}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
{example("p4")}
V1Switch(P(), Check(), HeavyHitters(), NoEgress(), Check(), D()) main;
"""
    )
    return source


def test_the_documented_program_tells_who_sends_much(source: Path) -> None:
    told: list[tuple[int, int]] = []
    with SimulatedNetwork(NETWORK) as simulated:
        sketch = Sketch(simulated, configuration(source))
        simulated.devices[1].on_digest(lambda _, words: told.append((words[0], words[1])))
        for source_ip, packets in ((1, 12), (2, 9), (3, 30)):
            for _ in range(packets):
                sketch.host.send(np.frombuffer(struct.pack(">I", source_ip) + bytes(996), np.uint8)[None])
        simulated.run_until(None)
    assert told == [(1, 10_000), (3, 10_000)]


def test_the_documented_script_reads_the_sketch(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(source.parent)
    exec(example("python"), {})
    [described] = compile_p4(source).p4info.externs
    assert capsys.readouterr().out == f"{described.instances[0].preamble.id:#x} [2048, 2048, 2048, 2048]\n"


def test_the_page_counts_the_files_of_an_extern() -> None:
    rows = re.findall(r"(?m)^\| `([^`]+)` \|", PAGE)
    assert "CountMinSketch consists of eleven files" in PAGE and len(rows) == 11
    assert [row for row in rows if not (ROOT / row).is_file()] == []
    assert f"next free type id is {max(kind.type_id for kind in EXTERNS.values()) + 1:#x}" in PAGE
    assert "at most four attributes" in PAGE and ExternKind.most_attributes == 4
