"""Aggregation's decisions about jobs: who sums, in which slots, among which switches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.controller.core.controller import Controller
from gradbed.controller.core.service import ServiceConfig, load_services
from gradbed.controller.systems.aggregation.job_plan import AggregationJob, SlotRange
from gradbed.topo.generators import fat_tree
from tests.unit.controller.fake_southbound import FakeSouthbound

TOPOLOGY = fat_tree(4)
NUMBER = {switch.name: switch.number for switch in TOPOLOGY.switches}
SERVICE = "gradbed.controller.systems.aggregation.service:AggregationService"


class Network:
    """A controller of aggregation alone; all switches sum but for those of `switches`."""

    def __init__(self, switches: Mapping[str, str] | None = None, **settings: Any) -> None:
        self.southbound = FakeSouthbound([switch.name for switch in TOPOLOGY.switches])
        self.controller = Controller(
            TOPOLOGY,
            self.southbound,
            load_services([ServiceConfig(name="aggregation", service=SERVICE, settings=settings)]),
            {switch.name: "aggregation" for switch in TOPOLOGY.switches} | dict(switches or {}),
        )

    def add(self, workers: list[str], server: str, *sums_at: str, **options: Any) -> AggregationJob:
        placement = {"placement": "explicit", "switches": sums_at} if sums_at else {}
        request = {"workers": workers, "server": server, **placement, **options}
        job: AggregationJob = self.controller.add_job("aggregation", request).state
        return job

    def delete(self, number: int) -> None:
        self.controller.delete_job("aggregation", number)


def test_the_planner_can_be_named_or_turned_off() -> None:
    network = Network()
    assert network.add(["h2"], "h1", "c2").designated_switches == (NUMBER["c2"], NUMBER["e1"])
    assert network.add(["h2"], "h1", "a1", "e1").designated_switches == (NUMBER["a1"], NUMBER["e1"])
    assert network.add(["h2"], "h1").designated_switches == (NUMBER["e1"],)
    assert network.add(["h2"], "h1", placement="none").designated_switches == ()


def test_legacy_switches_forward_and_do_not_sum() -> None:
    network = Network({"a1": "openflow", "a2": "forward"}, congestion_packets=20)
    job = network.add(["h5", "h9"], "h1", "c1")
    assert job.designated_switches == (NUMBER["c1"], NUMBER["e1"])
    plan = network.southbound.applied[-1]
    assert (plan["a1"].kind, plan["a1"].program) == ("openflow", "forward")
    assert (plan["a2"].kind, plan["a2"].program) == ("p4", "forward")
    assert (plan["c1"].kind, plan["c1"].program) == ("p4", "aggregation")
    with pytest.raises(UserError, match="a1 is a legacy switch"):
        network.add(["h6"], "h2", "a1")
    assert [job.number for job in network.controller.jobs()] == [1]
    thresholds = [entry for entry in plan["c1"].entries if entry.table == "congestion_thresholds"]
    assert [entry.params for entry in thresholds] == [{"threshold": 20}] * 4
    assert {entry.table for entry in plan["a2"].entries} <= {"ipv4_routes", "multicast_routes", "udp_routes"}


def test_a_job_goes_on_around_a_link_that_is_down() -> None:
    """Its labels and its multicast address stay, which its agents know; its routes and trees move."""
    network = Network()
    network.add(["h5", "h9"], "h1", "c1", "c3")
    controller = network.controller
    (job,) = controller.jobs()
    before, listed = controller.plan(), controller.listed(job)
    controller.link_changed("c1", "a1", False)
    after = controller.plan()
    assert controller.listed(job) == listed
    assert (after["c1"], after["a1"]) != (before["c1"], before["a1"])
    dead = {"c1": TOPOLOGY.port("c1", "a1"), "a1": TOPOLOGY.port("a1", "c1")}
    for name, port in dead.items():
        assert port not in {entry.params.get("port") for entry in after[name].entries}
        assert all(port not in group.ports for group in after[name].groups)


class TestStaticSlots:
    """Ranges are given out and returned, switch by switch."""

    def test_every_job_gets_a_range_of_its_own(self) -> None:
        network = Network(slots=32)

        def add(slots: int) -> Mapping[str, SlotRange]:
            return network.add(["h5"], "h1", "e1", "c1", slot_policy="static", slots=slots).slot_ranges

        ranges = [add(slots) for slots in (8, 16, 8)]
        assert [each["e1"] for each in ranges] == [SlotRange(0, 8), SlotRange(8, 16), SlotRange(24, 8)]
        assert [each["c1"] for each in ranges] == [each["e1"] for each in ranges]
        with pytest.raises(UserError, match=r"no slots left at e1: the job asks for 1 in a row, 0 of 32 are free"):
            add(1)
        network.delete(2)
        with pytest.raises(UserError, match="asks for 17 in a row, 16 of 32 are free"):
            add(17)
        assert add(16)["c1"] == SlotRange(8, 16)

    def test_jobs_elsewhere_do_not_matter(self) -> None:
        network = Network(slots=32)
        network.add(["h5"], "h1", "e1", "c1", slot_policy="static")
        assert network.add(["h6"], "h9", "c2", slot_policy="static").slot_ranges == {
            "c2": SlotRange(0, 32),
            "e5": SlotRange(0, 32),
        }

    def test_more_than_there_are(self) -> None:
        with pytest.raises(UserError, match="1 to 32 slots of a switch, not 33"):
            Network(slots=32).add(["h5"], "h1", "e1", slot_policy="static", slots=33)

    def test_policies_do_not_mix(self) -> None:
        network = Network(slots=32)
        with pytest.raises(UserError, match="slot policy dynamic all jobs share"):
            network.add(["h5"], "h1", "e1", slots=4)
        network.add(["h5"], "h1", "e1")
        with pytest.raises(UserError, match="e1 serves job 1 with slot policy dynamic"):
            network.add(["h6"], "h2", "e1", slot_policy="static", slots=4)
