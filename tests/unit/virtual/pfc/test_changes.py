"""PFC while a network changes: links with other models, links that are cut, programs that are loaded anew; and what a
capture shows of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from scapy.layers.l2 import Ether

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.sections import LinkOverride, LinkSection
from gradbed.experiments.scale import Scale
from gradbed.switch.simple_switch.packet_files import read_pcap
from gradbed.topo.files.own_form import as_yaml
from gradbed.topo.link import LinkModel, packets_without_loss
from gradbed.topo.registry import parse_topology
from tests.unit.virtual.pfc.networks import (
    frame,
    loaded,
    program,
    quiet_interfaces,
    ring,
    route,
    rows,
    run,
    send,
    star,
)

FAST = LinkModel(rate_bps=8_000_000_000, delay_us=1, pfc_xoff_bytes=3000, pfc_xon_bytes=1000)
SLOW = LinkModel(rate_bps=80_000_000, delay_us=1)


def test_pauses_end_when_a_program_is_loaded_anew() -> None:
    """What waits is dropped, so nothing is held any more."""
    with star((FAST, SLOW)) as simulated:
        (sender,) = quiet_interfaces(simulated, [(1, 1)])
        send(sender, [frame(2, 1000)] * 50)
        simulated.run_until(20_000)
        assert rows(simulated)[1, 1, "in"].pauses_received[0] == 1
        simulated.devices[1].load(program())
        route(simulated, 1, {1: 1, 2: 2})
        run(simulated)
        found = rows(simulated)[1, 1, "in"]
        dropped = simulated.devices[1].statistics().swap_drops
        assert dropped > 0
        assert rows(simulated)[1, 2, "out"].packets == 50 - dropped
        assert found.pauses_sent == found.pauses_received and found.queued == 0


def test_a_link_may_lose_its_pfc_while_it_is_paused() -> None:
    with star((FAST, SLOW)) as simulated:
        (sender,) = quiet_interfaces(simulated, [(1, 1)])
        send(sender, [frame(2, 1000)] * 50)
        simulated.run_until(20_000)
        without = dataclasses.replace(FAST, pfc_xoff_bytes=0, pfc_xon_bytes=0)
        simulated.engine.set_link(1, 1, without, ["in"])
        run(simulated)
        found = rows(simulated)[1, 1, "in"]
        assert (found.pauses_sent[0], found.pauses_received[0], found.queued) == (1, 1, 0)
        assert rows(simulated)[1, 2, "out"].packets == 50


def test_a_link_may_get_pfc() -> None:
    """What waits in the switch by then does not count."""
    with star((dataclasses.replace(FAST, pfc_xoff_bytes=0, pfc_xon_bytes=0), SLOW)) as simulated:
        (sender,) = quiet_interfaces(simulated, [(1, 1)])
        send(sender, [frame(2, 1000)] * 10)
        simulated.run_until(100_000)
        simulated.engine.set_link(1, 1, FAST, ["in"])
        simulated.run_until(200_000)
        assert sum(rows(simulated)[1, 1, "in"].pauses_sent) == 0
        send(sender, [frame(2, 1000)] * 10)
        run(simulated)
        found = rows(simulated)[1, 1, "in"]
        assert found.pauses_sent[0] > 0 and found.pauses_sent == found.pauses_received
        assert rows(simulated)[1, 2, "out"].packets == 20


def test_pauses_pass_a_link_that_is_cut_and_packets_do_not() -> None:
    """So that both ends agree when it is mended."""
    config = ring(3, FAST, SLOW)
    with loaded(config) as simulated:
        for switch in (1, 2, 3):
            route(simulated, switch, {host: 1 if host == switch else 2 for host in (1, 2, 3)})
        for host, number in ((1, 50), (2, 50)):
            (sender,) = quiet_interfaces(simulated, [(host, 1)])
            send(sender, [frame(3, 1000)] * number)
        for _ in range(20):
            simulated.run_until(simulated.now_ns + 150_000)
            simulated.engine.set_link_up(1, 2, up=False)
            simulated.run_until(simulated.now_ns + 50_000)
            simulated.engine.set_link_up(1, 2, up=True)
        run(simulated)
        found = rows(simulated)
        assert all(row.pauses_sent == row.pauses_received for row in found.values())
        assert found[1, 2, "out"].pauses_sent[0] > 1
        lost = found[1, 2, "out"].losses
        assert found[3, 1, "out"].packets + lost == 100
        assert not any(row.queued for row in found.values())


def test_a_capture_shows_pause_frames(tmp_path: Path) -> None:
    file = tmp_path / "h1.pcap"
    with star((FAST, SLOW)) as simulated:
        (sender,) = quiet_interfaces(simulated, [(1, 1)])
        capture = simulated.engine.capture(file, [(1, 1, "out")])
        send(sender, [frame(2, 1000, 5)] * 12)
        run(simulated)
        capture.close()
        sent = rows(simulated)[1, 1, "in"].pauses_sent[5]
        assert rows(simulated)[1, 1, "out"].packets == 0
    with file.open("rb") as stream:
        frames = [text for _, text in read_pcap(stream)]
    assert len(frames) == 2 * sent > 2
    for number, text in enumerate(frames):
        ether = Ether(text)
        assert (len(text), ether.dst, ether.type) == (60, "01:80:c2:00:00:01", 0x8808)
        opcode, vector, *quanta = (int.from_bytes(text[at : at + 2], "big") for at in range(14, 34, 2))
        # One begins a pause, the next one ends it.
        assert (opcode, vector) == (0x0101, 1 << 5)
        assert quanta == [0xFFFF if priority == 5 and number % 2 == 0 else 0 for priority in range(8)]


# ---- What people write ----


def test_options_and_overrides() -> None:
    assert LinkSection(pfc_xoff_bytes=5000).model(Scale()).pfc_xon_bytes == 2500
    assert LinkSection(pfc_xoff_bytes=5000, pfc_xon_bytes=0).model(Scale()).pfc_xon_bytes == 0
    assert LinkSection().model(Scale()).pfc_xoff_bytes == 0
    assert LinkOverride(pfc_xoff_bytes=5000).fields(Scale()) == {"pfc_xoff_bytes": 5000, "pfc_xon_bytes": 2500}
    assert LinkOverride(pfc_xoff_bytes=0).fields(Scale()) == {"pfc_xoff_bytes": 0, "pfc_xon_bytes": 0}
    with pytest.raises(ValueError, match="a pause ends below where it begins"):
        LinkSection(pfc_xoff_bytes=5000, pfc_xon_bytes=5001)
    with pytest.raises(ValueError, match="do not overtake"):
        LinkSection(pfc_xoff_bytes=5000, delay_us=5, jitter_us=3, reorder=True)
    with pytest.raises(UserError, match="one channel"):
        LinkModel(pfc_xoff_bytes=5000, channels=2)


def test_a_file_keeps_it(tmp_path: Path) -> None:
    topology = parse_topology("star:2", FAST).with_links([("h2", "s1")], pfc_xoff_bytes=0, pfc_xon_bytes=0)
    file = tmp_path / "net.yaml"
    file.write_text(as_yaml(topology))
    again = parse_topology(str(file))
    assert [link.model for link in again.links] == [link.model for link in topology.links]
    file.write_text(
        "link: {pfc_xoff_bytes: 4000}\nswitches: {s1: }\nhosts: {h1: , h2: }\nlinks: [[h1, s1], [h2, s1]]"
    )
    assert {link.model.pfc_xon_bytes for link in parse_topology(str(file)).links} == {2000}


@pytest.mark.parametrize("model", [LinkModel(pfc_xoff_bytes=5000), LinkModel(rate_bps=10**9)])
def test_room_follows_from_rate_and_xoff(model: LinkModel) -> None:
    with pytest.raises(UserError, match="follows from its rate and its pfc_xoff_bytes"):
        packets_without_loss([model], 64, 1500)
