"""People's own programs under traffic, on the virtual clock: what comes back, and what goes wrong in one line."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from gradbed.common.errors import UserError
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.systems.workload.report import notes
from gradbed.experiments.systems.workload.system import WorkloadSystem
from gradbed.experiments.traffic import agents as traffic_agents
from gradbed.experiments.traffic import connections
from gradbed.switch.virtual import HostInterface
from tests.unit.workload.runs import OWN, ROUTES, configuration, run, table

EMPTY = "tables: {}\n"


def test_everything_arrives_and_is_counted_everywhere(tmp_path: Path) -> None:
    result = run(tmp_path, program={"registers": ["seen"]}, topology={"kind": "leaf-spine:2,1,2"})
    assert result.failures == () or list(result.failures) == []
    assert (result.metrics["sent_packets"], result.metrics["received_packets"], result.metrics["loss"]) == (
        300,
        300,
        0,
    )
    assert [
        result.metrics[name] for name in ("program_drops", "no_entry_drops", "no_port_drops", "misdelivered")
    ] == [
        0,
        0,
        0,
        0,
    ]
    registers = {row["switch"]: row["value"] for row in table(result, "registers")}
    counters = {row["switch"]: row["packets"] for row in table(result, "counters") if row["counter"] == "arrived"}
    assert registers == counters == {row["switch"]: row["received"] for row in table(result, "switches")}
    # Every packet passes one leaf or two.
    assert 300 < registers["l1"] + registers["l2"] < 600
    assert 0 < float(result.metrics["busiest_link_load"] or 0) < 1
    latency = table(result, "latency")
    assert sum(row["packets"] for row in latency) == 300
    assert latency[-1]["share"] == 1 and latency[-1]["latency_us"] == result.metrics["max_us"]
    assert all(row["agrees"] for row in table(result, "hosts"))


def test_many_hosts_keep_fewer_packets_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a thousand of them keep more than memory has room for."""
    sent: list[int] = []
    received: list[int] = []

    def counted(name: str, counts: list[int], of: Callable[[Any, Any], int]) -> None:
        real = getattr(HostInterface, name)

        def call(self: HostInterface, *arguments: Any) -> Any:
            result = real(self, *arguments)
            counts.append(of(arguments, result))
            return result

        monkeypatch.setattr(HostInterface, name, call)

    counted("send", sent, lambda arguments, result: len(arguments[0]))
    counted("receive", received, lambda arguments, result: len(result[1]))

    def run_keeping(packets: int) -> tuple[TrialResult, int, int]:
        monkeypatch.setattr(traffic_agents, "KEPT_PACKETS", packets)
        sent.clear()
        received.clear()
        traffic = {"pattern": "incast", "packets": 6000, "load": 0.9}
        return run(tmp_path, traffic=traffic), max(sent), max(received)

    usual, most_sent, most_received = run_keeping(1 << 18)
    frugal, least_sent, least_received = run_keeping(3 * 64)
    assert most_sent > 300 and most_received > 500
    # A quarter of 64 at a time leaves, on average; 64 can come, at the rate of the link, until they are taken in.
    assert least_sent <= 40 and least_received <= 66
    assert frugal.metrics == usual.metrics and frugal.tables == usual.tables
    assert usual.metrics["received_packets"] == 6000


def test_packets_arrive_whatever_headers_they_are_given(tmp_path: Path) -> None:
    result = run(tmp_path, program={"macros": ["TAGGED"]})
    assert (result.metrics["received_packets"], result.metrics["foreign_frames"]) == (300, 0)
    assert list(result.failures) == [] and table(result, "notes") == []


def test_drops_are_told_apart_by_their_cause(tmp_path: Path) -> None:
    """To h1 by the entries, to h2 without an entry, to h3 to a port that is not there."""
    entries = """
tables:
  routes:
    - {match: {hdr.ipv4.dst_addr: $h1.ip}, action: drop}
    - {match: {hdr.ipv4.dst_addr: $h3.ip}, action: forward, params: {port: 9}}
"""
    result = run(tmp_path, entries, traffic={"arrivals": "constant", "packets": 600})
    assert result.metrics["received_packets"] == 0
    found = {name: result.metrics[name] for name in ("program_drops", "no_entry_drops", "no_port_drops")}
    assert found == dict.fromkeys(found, 200)
    said = "\n".join(row["note"] for row in table(result, "notes"))
    assert "200 packets were sent to a port that does not exist" in said
    assert (
        "200 packets were dropped by OwnIngress.drop on a hit in table OwnIngress.routes, at own.p4:58 (s1)" in said
    )
    assert (
        "200 packets were dropped by OwnIngress.drop on a miss in table OwnIngress.routes, at own.p4:58 (s1)" in said
    )
    assert "nothing arrived" in said


def test_what_code_drops_did_not_want_for_an_entry(tmp_path: Path) -> None:
    """Also behind a packet that did."""
    topology = configuration(tmp_path).topology.build(Scale())
    sender = topology.host("h1")
    frames = [Ether(src=sender.mac, dst=sender.gateway_mac) / IP(dst="192.0.2.1", ttl=ttl) for ttl in (64, 13, 13)]
    wrpcap(str(tmp_path / "frames.pcap"), frames)
    result = run(tmp_path, frames={"replay": tmp_path / "frames.pcap"})
    assert (result.metrics["no_entry_drops"], result.metrics["program_drops"]) == (1, 2)
    assert [(row["packets"], row["dropped"]) for row in table(result, "drops")] == [
        (2, "by mark_to_drop in ingress, at own.p4:58"),
        (1, "by OwnIngress.drop on a miss in table OwnIngress.routes, at own.p4:58"),
    ]


def test_what_code_drops_after_a_table_that_missed_is_the_codes(tmp_path: Path) -> None:
    """The table's miss action is NoAction, so nothing but the control's own statement drops."""
    source = OWN.read_text()
    changed = source.replace("default_action = drop();", "default_action = NoAction();").replace(
        "        actions = { forward; deliver; drop; wander; }",
        "        actions = { forward; deliver; drop; wander; NoAction; }",
    )
    program = tmp_path / "own.p4"
    program.write_text(
        changed.replace("hdr.ipv4.ttl == 13", "!routes.apply().hit").replace("            routes.apply();\n", "")
    )
    result = run(tmp_path, EMPTY, program={"path": program})
    assert (result.metrics["no_entry_drops"], result.metrics["program_drops"]) == (0, 300)
    [note] = [row["note"] for row in table(result, "notes") if "dropped" in row["note"]]
    assert (
        note == "300 packets were dropped by mark_to_drop in ingress, at own.p4:58 (s1): gradbed p4 trace shows one"
    )


def test_a_program_that_names_no_port_sends_to_port_0(tmp_path: Path) -> None:
    entries = """
tables:
  routes:
    - default_action: wander
"""
    result = run(tmp_path, entries)
    assert result.metrics["no_port_drops"] == 300
    assert "does the program set egress_spec" in table(result, "notes")[0]["note"]


def test_full_queues_and_lossy_links_are_told_apart(tmp_path: Path) -> None:
    full = run(
        tmp_path,
        topology={"link": {"rate_mbps": 10, "queue_packets": 5}},
        traffic={"pattern": "incast", "load": 2.0, "packets": 500},
    )
    assert full.metrics["queue_drops"] == 500 - int(str(full.metrics["received_packets"])) > 100
    lossy = run(tmp_path, topology={"link": {"rate_mbps": 100, "loss": 0.1}})
    assert lossy.metrics["link_losses"] == 300 - int(str(lossy.metrics["received_packets"])) > 30
    assert (full.metrics["link_losses"], lossy.metrics["queue_drops"]) == (0, 0)
    assert not full.failures and not lossy.failures


def test_expectations_become_failures(tmp_path: Path) -> None:
    expect = {"loss": 0, "p99_us": "< 1000000", "register:seen[1]": 300, "counter:s1:arrived[2]": "> 0"}
    assert not run(tmp_path, expect=expect).failures
    wrong = run(tmp_path, expect={"loss": "> 0", "register:s1:seen[1]": "> 300", "counter:arrived[0]": 1})
    assert list(wrong.failures) == [
        "expected loss > 0, found 0",
        "expected register:s1:seen[1] > 300, found 300",
        "expected counter:arrived[0] == 1, found 0",
    ]


def test_samples_come_as_tables(tmp_path: Path) -> None:
    samples = {"interval_us": 1000, "links": ["s1-h1"], "registers": ["seen"]}
    result = run(tmp_path, samples=samples, traffic={"pattern": "incast", "load": 1.5})
    links, registers = table(result, "link_samples"), table(result, "register_samples")
    assert len(links) == len(registers) > 3 and {row["phase"] for row in links} == {"traffic"}
    values = [row["value"] for row in registers]
    assert values == sorted(values) and values[-1] <= 300
    assert max(row["queue_packets"] for row in links) > 10


def test_flows_of_published_sizes(tmp_path: Path) -> None:
    result = run(tmp_path, traffic={"sizes": "web-search", "most_flow_kbytes": 100, "packets": 40, "load": 0.3})
    assert not result.failures and len(table(result, "flows")) == 40
    assert 0 < float(str(result.metrics["flow_p50_us"])) <= float(str(result.metrics["flow_p99_us"]))


# ---- Frames of one's own ----


def test_a_template_is_what_is_sent(tmp_path: Path) -> None:
    template = "Ether()/IP(dst=$dst, tos=4)/TCP(sport=$port, dport=80)"
    result = run(tmp_path, frames={"template": template}, traffic={"flows": 2})
    assert (result.metrics["sent_packets"], result.metrics["received_packets"]) == (300, 300)
    assert not result.failures and result.metrics["foreign_frames"] == 0


def test_a_capture_is_sent_as_it_was_recorded(tmp_path: Path) -> None:
    topology = configuration(tmp_path).topology.build(Scale())
    sender, receiver = topology.host("h1"), topology.host("h3")
    frames = [
        Ether(src=sender.mac, dst=sender.gateway_mac) / IP(src=sender.ip, dst=receiver.ip) / UDP() / (b"x" * number)
        for number in range(20)
    ]
    for number, frame in enumerate(frames):
        frame.time = 1000 + 0.01 * number
    wrpcap(str(tmp_path / "frames.pcap"), frames)
    section = {"replay": tmp_path / "frames.pcap", "replay_speed": 10}
    result = run(tmp_path, frames=section, samples={"interval_us": 1000, "links": ["h1-s1"]})
    assert (result.metrics["sent_packets"], result.metrics["received_packets"]) == (20, 20)
    assert not result.failures
    # One each millisecond, since it goes ten times as fast; the first as soon as it begins.
    assert [row["packets"] for row in table(result, "link_samples")][:10] == [1] * 10


def test_commands_that_change_nothing_are_noted(tmp_path: Path) -> None:
    """636 of 636 packets pass a port of which a file for BMv2 says 100 packets/s: the report says why."""
    hosts = configuration(tmp_path).topology.build(Scale()).hosts
    lines = ["set_queue_rate 100", "", "  set_queue_depth 1 2", "counter_write arrived 2 7 8", "show_tables"]
    lines += [f"table_add routes forward {each.ip}/32 => {number}" for number, each in enumerate(hosts, 1)]
    (tmp_path / "s1-commands.txt").write_text("\n".join(lines))
    result = run(tmp_path, program={"entries_file": tmp_path / "s1-commands.txt"})
    assert result.metrics["received_packets"] == 300
    told = [str(row["note"]).removeprefix(f"{tmp_path}/s1-commands.txt:") for row in table(result, "notes")]
    assert [each.partition(" is not applied: ")[0] for each in told] == [
        "1: set_queue_rate 100",
        "3: set_queue_depth 1 2",
        "4: counter_write arrived 2 7 8",
    ]
    assert "--rate-mbps" in told[0] and "--queue-packets" in told[1]


def test_what_a_capture_lacks_is_noted(tmp_path: Path) -> None:
    """Raw IP of a snapshot length, as public traces have it: each packet comes in its original length."""
    topology = configuration(tmp_path).topology.build(Scale())
    packet = bytes(IP(src=topology.host("h1").ip, dst=topology.host("h2").ip) / UDP() / bytes(600))
    file = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 64, 101)
    for second in (5, 4, 6):
        file += struct.pack("<4I", second, 0, 64, len(packet)) + packet[:64]
    (tmp_path / "raw.pcap").write_bytes(file)
    section = {"replay": tmp_path / "raw.pcap", "replay_speed": 1000}
    result = run(tmp_path, frames=section)
    assert (result.metrics["sent_packets"], result.metrics["received_packets"]) == (3, 3)
    carried = {(row["from"], row["to"]): row["bytes"] for row in table(result, "links") if row["packets"]}
    assert carried == dict.fromkeys([("h1", "s1"), ("s1", "h2")], 3 * (14 + len(packet)))
    told = [str(row["note"]) for row in table(result, "notes")]
    assert [line.split(":")[0].split(" of ")[0] for line in told] == ["3", "1 packets", "3 packets"], told
    assert not result.failures


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ({"template": "Ether()/IP(dst=$to)"}, r"no \$to"),
        ({"template": "Ether()/Raw(bytes(990))"}, "do not fit a frame of 1000 bytes"),
        ({"layers": "none.py"}, "--layers goes with --template"),
        ({"replay": "none.pcap"}, "cannot read .*none.pcap"),
        ({"replay": str(OWN)}, "is no capture file"),
        ({"replay": "none.pcap", "template": "Ether()"}, "do not go together"),
    ],
)
def test_frames_that_cannot_be_are_one_line(frames: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message) as caught:
        run(tmp_path, frames=frames)
    assert "\n" not in str(caught.value)


# ---- Coverage ----


def test_coverage_is_of_all_switches(tmp_path: Path) -> None:
    entries = ROUTES + "    - {match: {hdr.ipv4.dst_addr: 192.0.2.0/24}, action: drop}\n"
    result = run(
        tmp_path, entries, program={"coverage": True}, topology={"kind": "leaf-spine:2,1,1"}, traffic={"packets": 40}
    )
    rows = {(row["category"], row["name"]): row["hits"] for row in table(result, "coverage")}
    received = sum(row["received"] for row in table(result, "switches"))
    # Three switches on each packet's way.
    assert rows["parser states", "parse_ipv4"] == received == 3 * 40
    assert result.metrics["unused_entries"] == 1
    assert [name for (category, name), hits in rows.items() if category == "actions" and not hits] != []
    assert 0 < float(str(result.metrics["covered_statements"])) < 1
    assert "own.p4" in (tmp_path / "coverage.html").read_text()
    plain = run(tmp_path, entries, topology={"kind": "leaf-spine:2,1,1"}, traffic={"packets": 40})
    assert plain.metrics["unused_entries"] is None
    assert plain.metrics["p99_us"] == result.metrics["p99_us"]


# ---- Traces ----


@pytest.mark.parametrize("load", [0.1, 0.001])
def test_a_packet_is_followed_through_all_switches(load: float, tmp_path: Path) -> None:
    """The third that was sent, also where the first is at another switch before that."""
    topology = {"kind": "leaf-spine:2,1,1"}
    result = run(
        tmp_path, program={"trace": "dst=h2 and nth=3"}, topology=topology, traffic={"packets": 20, "load": load}
    )
    rows = table(result, "trace")
    assert [(row["hop"], row["switch"]) for row in rows] == [(1, "l1"), (2, "s1"), (3, "l2")]
    times = [row["time_us"] for row in rows]
    assert times == sorted(times) and times[0] < times[2]
    for row in rows:
        assert "OwnIngress.routes" in row["text"] and "ipv4.dst_addr" in row["text"]


def test_a_packet_that_is_dropped_tells_why(tmp_path: Path) -> None:
    result = run(tmp_path, EMPTY, program={"trace": "src=h1"})
    (row,) = table(result, "trace")
    assert row["switch"] == "s1" and "drop" in row["text"]


def test_no_such_packet_is_noted(tmp_path: Path) -> None:
    result = run(tmp_path, program={"trace": "dport=1 and nth=2"})
    assert table(result, "trace") == []
    assert table(result, "notes") == [{"note": "no packet was dport=1 and nth=2"}]


# ---- Switches with different programs ----


def two_programs(folder: Path) -> dict[str, dict[str, object]]:
    """Sections: s1 runs own.p4, s2 a copy with another name; h1 - s1 - s2 - h2."""
    (folder / "own.p4").write_text(OWN.read_text())
    (folder / "other.p4").write_text(OWN.read_text().replace("OwnIngress", "OtherIngress"))
    topology = {
        "p4_src": "own.p4",
        "topology": {
            "assignment_strategy": "mixed",
            "links": [["h1", "s1"], ["s1", "s2"], ["s2", "h2"]],
            "hosts": {"h1": {}, "h2": {}},
            "switches": {"s1": {}, "s2": {"p4_src": "other.p4"}},
        },
    }
    (folder / "p4app.json").write_text(json.dumps(topology))
    return {"topology": {"kind": str(folder / "p4app.json")}, "program": {"path": folder / "own.p4"}}


def test_every_program_has_coverage_of_its_own(tmp_path: Path) -> None:
    sections = two_programs(tmp_path)
    result = run(
        tmp_path,
        topology=sections["topology"],
        program={**sections["program"], "coverage": True},
        traffic={"packets": 40, "pattern": "pairs"},
    )
    assert result.metrics["received_packets"] == 40
    rows = [row for row in table(result, "coverage") if row["name"] == "parse_ipv4"]
    assert [(row["program"], row["file"], row["hits"]) for row in rows] == [
        ("own.p4", "own.p4", 40),
        ("other.p4", "other.p4", 40),
    ]
    for name in ("own", "other"):
        assert f"{name}.p4" in (tmp_path / f"coverage-{name}.html").read_text()


def test_a_trace_goes_through_all_programs(tmp_path: Path) -> None:
    sections = two_programs(tmp_path)
    program = {**sections["program"], "trace": "dst=h2 and nth=2"}
    result = run(tmp_path, topology=sections["topology"], program=program, traffic={"packets": 4, "pattern": "pairs"})
    first, second = table(result, "trace")
    assert (first["switch"], second["switch"]) == ("s1", "s2")
    assert "OwnIngress.routes" in first["text"] and "OtherIngress.routes" in second["text"]


# ---- What goes wrong ----


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"traffic": {"duration_ms": 0.001, "packets": None}}, "no packet was sent"),
        ({"expect": {"los": 0}}, "no metric 'los'"),
        ({"program": {"path": "none.p4"}}, "cannot read .*none.p4"),
        ({"program": {"path": None}}, "which program"),
        ({"traffic": {"transport": "tcp"}}, "tcp needs the real clock: use --transport udp"),
        ({"clock": "real", "traffic": {"transport": "tcp", "warm_up_ms": 1}}, "--warm-up-ms does not go"),
        ({"clock": "real", "traffic": {"transport": "tcp"}, "frames": {"template": "Ether()"}}, "goes without"),
        ({"traffic": {"transport": "tcp"}, "background": {"workers": ["all"]}}, "tcp needs the real clock"),
        ({"clock": "real", "program": {"model": "bmv2", "coverage": True}}, "--coverage needs gradbed's switches"),
        ({"clock": "real", "program": {"model": "bmv2", "trace": "dst=h1"}}, "--trace needs gradbed's switches"),
        ({"faults": [{"fault": "agent-start", "agent": "traffic of h1", "at_ms": 1}]}, "does not begin anew"),
        ({"traffic": {"pattern": "incst"}}, "no traffic is called 'incst'.*incast"),
        ({"samples": {"interval_us": 5, "links": ["s1-s9"]}}, "s9"),
        ({"program": {"trace": "to=h1"}}, "'to=h1' is no condition"),
        ({"program": {"trace": "dst=h9"}}, "'h9' is no host"),
        ({"program": {"trace": "nth=0"}}, "from 1 on"),
        ({"program": {"trace": "dst=h1", "coverage": True}}, "two runs"),
        ({"expect": {"counter:nothing[0]": 1}}, "no switch has a counter 'nothing'"),
        ({"expect": {"register:nothing[0]": 1}}, "nothing"),
    ],
)
def test_what_cannot_be_is_one_line(sections: dict[str, dict[str, object]], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message) as caught:
        run(tmp_path, **sections)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("traffic", "message"),
    [
        ({}, "--packets: iperf3 runs for a time: use --duration-ms"),
        ({"packets": None, "sizes": "web-search"}, "--sizes: iperf3 knows no web-search: use --transport tcp"),
    ],
)
def test_what_iperf3_cannot_do_is_one_line(
    traffic: dict[str, object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sections: dict[str, Any] = {"clock": "real", "traffic": {"transport": "iperf3", **traffic}}
    monkeypatch.setattr(connections, "find_iperf3", lambda: "iperf3")
    with pytest.raises(UserError, match=message):
        WorkloadSystem().check(configuration(tmp_path, **sections))


def test_a_missing_iperf3_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = configuration(tmp_path, clock="real", traffic={"transport": "iperf3", "packets": None})
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(UserError, match=r"iperf3 is missing: apt-get install --no-install-recommends iperf3"):
        WorkloadSystem().check(chosen)


def test_a_full_table_is_one_line(tmp_path: Path) -> None:
    entries = "tables:\n  routes:\n" + "".join(
        f"    - {{match: {{hdr.ipv4.dst_addr: 10.1.0.{number}}}, action: drop}}\n" for number in range(65)
    )
    with pytest.raises(UserError, match=r"entries.yaml:\d+:\d+: .*routes.*64") as caught:
        run(tmp_path, entries)
    assert "\n" not in str(caught.value)


def test_zero_packets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        configuration(tmp_path, traffic={"packets": 0})


def test_notes_say_nothing_where_all_is_well() -> None:
    assert notes({"received_packets": 5, "no_port_drops": 0}) == []


# ---- Studies ----


def test_a_study_finds_its_topology_beside_it(tmp_path: Path) -> None:
    sections = two_programs(tmp_path)
    (tmp_path / "s1-commands.txt").write_text("table_set_default routes drop\n")
    described = json.loads((tmp_path / "p4app.json").read_text())
    described["topology"]["switches"]["s1"]["cli_input"] = "s1-commands.txt"
    (tmp_path / "p4app.json").write_text(json.dumps(described))
    study = tmp_path / "study.yaml"
    study.write_text("name: own\nsystem: workload\ntopology: {kind: p4app.json}\ntraffic: {packets: 10}\n")
    (trial,) = load_study(study).trials
    assert trial.configuration.topology.kind == sections["topology"]["kind"]
    before = trial.configuration.canonical()
    # Other commands of the same name make another trial.
    (tmp_path / "s1-commands.txt").write_text("table_set_default routes wander\n")
    assert before != load_study(study).trials[0].configuration.canonical()


def test_a_study_finds_its_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "own.p4").write_text(OWN.read_text())
    (tmp_path / "entries.yaml").write_text(ROUTES)
    study = tmp_path / "study.yaml"
    study.write_text(
        "name: own\nsystem: workload\ntopology: {kind: 'star:2'}\n"
        "program: {path: own.p4, entries: [entries.yaml]}\ntraffic: {packets: 10}\nexpect: {loss: 0}\n"
    )
    (trial,) = load_study(study).trials
    assert trial.configuration.clock == "virtual"
    assert trial.configuration.program.path == tmp_path / "own.p4"
    before = trial.configuration.canonical()
    assert before == load_study(study).trials[0].configuration.canonical()
    # Another program of the same name is another trial.
    (tmp_path / "own.p4").write_text(OWN.read_text() + "// changed\n")
    assert before != load_study(study).trials[0].configuration.canonical()


# ---- The load of links ----

BETWEEN = {"kind": "leaf-spine:2,1,2", "tiers": {"leaf-spine": {"rate_mbps": 50}}}
"""What hosts of l1 send to those of l2 has one way, whose rate is a quarter of theirs together."""


@pytest.mark.parametrize("warm_up_ms", [0, 18])
def test_no_link_carries_more_than_its_rate(warm_up_ms: float, tmp_path: Path) -> None:
    """Nor by a warm-up, which most packets belong to. A frame may have been half sent when it ended."""
    traffic = {"packets": None, "duration_ms": 20, "warm_up_ms": warm_up_ms, "load": 0.9, "within": "between-racks"}
    load = run(tmp_path, topology=BETWEEN, traffic=traffic).metrics["busiest_link_load"]
    frame = 8 * 1000 / (50e6 * (0.020 - warm_up_ms / 1000))
    assert isinstance(load, float) and 0.95 - frame < load <= 1 + frame


def test_a_load_is_a_share_of_the_rate_that_a_link_has_at_the_time(tmp_path: Path) -> None:
    """Half of the time 50 Mbit/s, half of it 10: always full."""
    faults = [
        {"fault": "link-change", "link": [leaf, "s1"], "change": {"rate_mbps": 10}, "at_ms": 50}
        for leaf in ("l1", "l2")
    ]
    traffic = {"packets": None, "duration_ms": 100, "load": 0.9, "within": "between-racks"}
    load = run(tmp_path, topology=BETWEEN, traffic=traffic, faults=faults).metrics["busiest_link_load"]
    assert isinstance(load, float) and 0.98 < load < 1.001


def test_a_load_is_what_was_sent_over_the_time(tmp_path: Path) -> None:
    """At constant distances: 20 of 100 Mbit/s from each of two hosts."""
    traffic = {"packets": None, "duration_ms": 100, "load": 0.2, "within": "between-racks", "arrivals": "constant"}
    load = run(tmp_path, topology={"kind": "leaf-spine:2,1,2"}, traffic=traffic).metrics["busiest_link_load"]
    assert load == pytest.approx(0.4, rel=0.01)


def test_packets_for_a_controller_that_is_not_there_are_told(tmp_path: Path) -> None:
    result = run(tmp_path, "tables: {routes: [{default_action: forward, params: {port: 510}}]}\n")
    assert (result.metrics["to_controller"], result.metrics["received_packets"]) == (300, 0)
    assert list(result.failures) == [] and "300 packets were sent to port 510" in str(table(result, "notes"))


def test_a_flow_that_lost_a_packet_is_not_complete(tmp_path: Path) -> None:
    traffic = {"sizes": "web-search", "most_flow_kbytes": 20, "packets": 40, "load": 0.3}
    rows = table(run(tmp_path, topology={"link": {"loss": 0.05}}, traffic=traffic), "flows")
    whole = [row["received_packets"] == row["packets"] for row in rows]
    assert [row["completion_us"] is not None for row in rows] == whole and set(whole) == {True, False}
