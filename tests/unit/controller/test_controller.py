"""Services, jobs and the plan of them all, with systems that are made up (lamps.py)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.controller.core.controller import Controller
from gradbed.controller.core.jobs import Job, Journal, JournalContents, UnknownJob
from gradbed.controller.core.service import ServiceConfig, load_services
from gradbed.controller.planning.plan import Plan, SwitchPlan, TableEntry
from gradbed.controller.planning.routing import link_name, remaining_network, shortest_routes
from gradbed.controller.southbound.interface import Digest, PacketIn, SouthboundError, SwitchStatus
from gradbed.topo.generators import leaf_spine
from gradbed.topo.graph import Topology
from tests.unit.controller.fake_southbound import FakeSouthbound
from tests.unit.controller.lamps import BELLS, LAMPS, LampService
from tests.unit.controller.networks import network, routes_alone

TOPOLOGY = leaf_spine(2, 2, 1)
"""Leaves l1 and l2, each linked to both spines s1 and s2."""

AWAY = SouthboundError("l1 is not connected: gone")


@pytest.fixture
def southbound() -> FakeSouthbound:
    return FakeSouthbound([switch.name for switch in TOPOLOGY.switches])


def controller(southbound: FakeSouthbound, switches: Mapping[str, str] | None = None, **options: Any) -> Controller:
    """Of lamps and bells. All switches run lamps but for those of `switches`."""
    programs = {switch.name: "lamps" for switch in TOPOLOGY.switches} | dict(switches or {})
    return Controller(TOPOLOGY, southbound, [LAMPS, BELLS], programs, **options)


def entries(plan: SwitchPlan, table: str) -> list[TableEntry]:
    return [entry for entry in plan.entries if entry.table == table]


def lamp(switch: str, number: int = 0) -> dict[str, Any]:
    return {"switch": switch, "lamp": number}


def test_jobs_come_and_go_and_leave_nothing_behind(southbound: FakeSouthbound) -> None:
    added: list[Job] = []
    deleted: list[Job] = []
    lights = controller(southbound, on_job_added=added.append, on_job_deleted=deleted.append)
    base = lights.plan()
    assert base == routes_alone(TOPOLOGY, "lamps")
    first = lights.add_job("lamps", lamp("l1", 3))
    second = lights.add_job("lamps", lamp("l2", 1))
    assert [lights.answer(job).model_dump() for job in (first, second)] == [
        {"job": 1, "lamp": 3},
        {"job": 2, "lamp": 1},
    ]
    both = southbound.applied[-1]
    assert both == lights.plan() == base.merged(*(plan_of(lights, job) for job in (first, second)))
    lights.delete_job("lamps", 1)
    assert southbound.applied[-1] == base.merged(plan_of(lights, second))
    lights.delete_job("lamps", 2)
    assert southbound.applied[-1] == base
    assert (added, deleted) == ([first, second], [first, second])


def plan_of(lights: Controller, job: Job) -> Plan:
    plan: Plan = lights.services[job.system].plan(job.number, job.state)
    return plan


def test_systems_count_their_jobs_together_and_know_their_own_alone(southbound: FakeSouthbound) -> None:
    both = controller(southbound, {"l2": "bells", "s2": "forward"})
    numbers = [
        both.add_job("lamps", lamp("l1")).number,
        both.add_job("lamps", lamp("s1")).number,
        both.add_job("lamps", lamp("l1", 1)).number,
    ]
    assert numbers == [1, 2, 3]
    with pytest.raises(UserError, match="job 1 has lit lamp 0 of l1"):
        both.add_job("lamps", lamp("l1"))
    # What the lamps' jobs hold does not concern bells, which do not fit on switches with lamps.
    with pytest.raises(UserError, match="l1 has no lamps"):
        both.add_job("bells", lamp("l1"))
    assert both.add_job("bells", lamp("l2")).number == 4
    assert ([job.number for job in both.jobs()], [job.number for job in both.jobs("bells")]) == ([1, 2, 3, 4], [4])
    with pytest.raises(UnknownJob, match="job 4 is one of bells"):
        both.delete_job("lamps", 4)
    with pytest.raises(UserError, match="no system 'doors'; it serves lamps, bells"):
        both.add_job("doors", {})


def test_switches_without_a_systems_program_hold_its_plain_view(southbound: FakeSouthbound) -> None:
    lights = controller(southbound, {"s1": "forward", "s2": "openflow"})
    lights.add_job("lamps", lamp("l1"))
    plan = southbound.applied[-1]
    assert (plan["l1"].program, plan["s1"].program) == ("lamps", "forward")
    port = TOPOLOGY.port("s1", "l1")
    assert [(entry.match, entry.params) for entry in entries(plan["s1"], "udp_routes")] == [
        ({"hdr.udp.dst_port": 7, "hdr.udp.src_port": 1}, {"port": port})
    ]
    assert entries(plan["s1"], "ipv4_routes")
    assert (plan["s2"].kind, [flow.priority for flow in plan["s2"].flows][:1]) == ("openflow", [3000])
    with pytest.raises(UserError, match="s1 has no lamps"):
        lights.add_job("lamps", lamp("s1"))
    assert [job.number for job in lights.jobs()] == [1]


def test_a_program_without_routes_gets_none(southbound: FakeSouthbound) -> None:
    plan = controller(southbound, {"l2": "bells"}, unrouted_programs=["bells"]).plan()
    assert (plan["l2"].entries, bool(plan["l1"].entries)) == ((), True)


def test_systems_that_contradict_each_other(southbound: FakeSouthbound) -> None:
    class Other(LampService):
        def plan(self, number: int, state: Any) -> Plan:
            entry = TableEntry(table="lamps", match={"job": 1}, action="dim")
            return Plan(switches={"l1": SwitchPlan.of("lamps", [entry])})

    programs = {switch.name: "lamps" for switch in TOPOLOGY.switches}
    both = Controller(TOPOLOGY, southbound, [LAMPS, replace(LAMPS, name="dimmed", service_class=Other)], programs)
    both.add_job("lamps", lamp("l1"))
    with pytest.raises(UserError, match="the systems' plans contradict each other: l1: contradiction"):
        both.add_job("dimmed", lamp("l2"))
    assert [job.number for job in both.jobs()] == [1]


def test_numbers_are_not_given_out_twice(southbound: FakeSouthbound) -> None:
    lights = controller(southbound, first_job=2046)
    lights.delete_job("lamps", lights.add_job("lamps", lamp("l1")).number)
    assert lights.add_job("lamps", lamp("l1")).number == 2047
    with pytest.raises(UserError, match="no job number left"):
        lights.add_job("lamps", lamp("l2"))


def test_a_job_that_the_switches_do_not_take_does_not_exist(southbound: FakeSouthbound) -> None:
    added: list[Job] = []
    lights = controller(southbound, on_job_added=added.append)
    before = lights.plan()
    southbound.failure = AWAY
    with pytest.raises(SouthboundError):
        lights.add_job("lamps", lamp("l1"))
    assert (lights.jobs(), added, lights.plan()) == ([], [], before)
    southbound.failure = None
    # Some switch may have heard of number 1.
    assert lights.add_job("lamps", lamp("l1")).number == 2
    southbound.failure = AWAY
    with pytest.raises(SouthboundError):
        lights.delete_job("lamps", 2)
    assert [job.number for job in lights.jobs()] == [2]


def test_what_makes_no_sense_takes_no_number(southbound: FakeSouthbound) -> None:
    lights = controller(southbound)
    for request, line in (
        ({"switch": "l1"}, "lamp: is missing"),
        (lamp("l1", 9), "a switch has 4 lamps, there is no lamp 9"),
        (lamp("x"), "no switch 'x'"),
    ):
        with pytest.raises(UserError, match=line):
            lights.add_job("lamps", request)
    with pytest.raises(UnknownJob, match="there is no job 7"):
        lights.delete_job("lamps", 7)
    assert southbound.applied == []
    assert lights.add_job("lamps", lamp("l1")).number == 1


class TestMessages:
    def test_they_reach_the_service_whose_program_the_switch_runs(self, southbound: FakeSouthbound) -> None:
        both = controller(southbound, {"l2": "bells", "s1": "forward"})
        moth = Digest("moth_t", ({"moth": 5},))
        for switch in ("l1", "l2", "s1"):
            both.message(switch, moth)
        assert [service.seen for service in both.services.values()] == [[("l1", moth)], [("l2", moth)]]
        assert [entry.match for entry in entries(southbound.applied[-1]["l1"], "moths")] == [{"moth": 5}]
        applied = len(southbound.applied)
        both.message("l1", PacketIn(b"hello", {"ingress_port": 1}))
        assert len(southbound.applied) == applied, "nothing has changed"

    def test_what_is_learnt_stays_with_later_jobs_and_routes(self, southbound: FakeSouthbound) -> None:
        lights = controller(southbound)
        lights.message("l1", Digest("moth_t", ({"moth": 5}, {"moth": 6})))
        lights.add_job("lamps", lamp("l2"))
        lights.link_changed("l1", "s1", False)
        assert len(entries(southbound.applied[-1]["l1"], "moths")) == 2

    def test_what_a_switch_cannot_be_told_now_it_is_told_when_one_comes_back(
        self, southbound: FakeSouthbound
    ) -> None:
        lights = controller(southbound)
        southbound.failure = AWAY
        lights.message("l1", Digest("moth_t", ({"moth": 5},)))
        assert southbound.applied == []
        southbound.failure = None
        lights.switch_changed(SwitchStatus("l1", False, error="gone"))
        assert southbound.applied == []
        lights.switch_changed(SwitchStatus("l1", True, "lamps 1"))
        assert southbound.applied == [lights.plan()]
        lights.switch_changed(SwitchStatus("l2", True, "lamps 1"))
        assert southbound.applied == [lights.plan()]


class TestLinks:
    def test_a_link_that_goes_down_is_planned_around(self, southbound: FakeSouthbound) -> None:
        lights = controller(southbound)
        lights.add_job("lamps", lamp("l2"))
        before = lights.plan()
        spine = shortest_routes(TOPOLOGY).next_hop("l1", "l2")
        other = {"s1": "s2", "s2": "s1"}[spine]
        lights.link_changed(spine, "l1", False)
        plan = southbound.applied[-1]
        (towards,) = entries(plan["l1"], "towards_lamp")
        assert towards.params == {"port": TOPOLOGY.port("l1", other)}
        ports = {entry.params["port"] for entry in entries(plan["l1"], "ipv4_routes")}
        assert TOPOLOGY.port("l1", spine) not in ports
        assert lights.links_down() == {frozenset((spine, "l1"))}
        lights.link_changed("l1", spine, False)
        assert southbound.applied[-1] is plan, "it was down already"
        lights.link_changed("l1", spine, True)
        assert southbound.applied[-1] == before
        with pytest.raises(UserError, match="no link between 'l1' and 'l2'"):
            lights.link_changed("l1", "l2", False)

    def test_what_is_cut_off_does_not_matter_to_the_others(self, southbound: FakeSouthbound) -> None:
        """l1 loses both its links and then a host: the others go on, and everything is as before in the end."""
        lights = controller(southbound)
        before = lights.plan()
        links = [("l1", "s1"), ("l1", "s2"), ("h2", "l2"), ("l2", "s1")]
        for a, b in links:
            lights.link_changed(a, b, False)
        plan = southbound.applied[-1]
        # The only way from l2 to anybody is s2.
        ports = {entry.params["port"] for entry in entries(plan["l2"], "ipv4_routes")}
        assert ports == {TOPOLOGY.port("l2", "s2"), TOPOLOGY.port("l2", "h2")}
        for a, b in links:
            lights.link_changed(a, b, True)
        assert southbound.applied[-1] == before

    def test_links_that_nothing_can_replace_stay_in(self) -> None:
        line = network([(0, 1), (1, 2)], [1, 0, 1])
        everything = remaining(line)
        assert len(everything) == 4
        assert remaining(line, ("h1", "s1"), ("s1", "s2"), ("s2", "s3")) == everything
        ring = network([(0, 1), (1, 2), (2, 0)], [1, 0, 1])
        assert remaining(ring, ("s1", "s2")) == remaining(ring) - {frozenset(("s1", "s2"))}
        assert len(remaining(ring, ("s1", "s2"), ("s2", "s3"))) == len(remaining(ring)) - 1

    def test_the_switches_are_told_later_if_they_are_away(self, southbound: FakeSouthbound) -> None:
        lights = controller(southbound)
        southbound.failure = AWAY
        with pytest.raises(SouthboundError):
            lights.link_changed("l1", "s1", False)
        southbound.failure = None
        lights.switch_changed(SwitchStatus("l1", True, "lamps 1"))
        assert southbound.applied == [lights.plan()]
        ports = {entry.params["port"] for entry in entries(lights.plan()["l1"], "ipv4_routes")}
        assert TOPOLOGY.port("l1", "s1") not in ports


def remaining(topology: Topology, *down: tuple[str, str]) -> set[frozenset[str]]:
    return {link_name(link) for link in remaining_network(topology, {frozenset(name) for name in down}).links}


class TestJournal:
    def test_a_successor_holds_the_same_plan(self, southbound: FakeSouthbound, tmp_path: Path) -> None:
        journal = Journal(tmp_path / "journal.json")
        switches = {"l2": "bells"}
        lights = controller(southbound, switches, journal=journal)
        lights.add_job("lamps", lamp("l1"))
        lights.add_job("bells", lamp("l2"))
        lights.add_job("lamps", lamp("l1", 1))
        lights.delete_job("lamps", 3)
        after = controller(southbound, switches, journal=journal)
        assert after.plan() == lights.plan()
        assert after.jobs() == lights.jobs()
        assert [type(job.state).__name__ for job in after.jobs()] == ["LampState", "BellState"]
        # What the jobs before it took is still taken.
        with pytest.raises(UserError, match="job 1 has lit lamp 0 of l1"):
            after.add_job("lamps", lamp("l1"))
        assert after.add_job("lamps", lamp("s1")).number == 4

    def test_a_number_that_switches_may_know_is_not_given_out_again(
        self, southbound: FakeSouthbound, tmp_path: Path
    ) -> None:
        """As if the controller had been killed while the switches took the job."""
        journal = Journal(tmp_path / "journal.json")
        southbound.failure = SouthboundError("killed")
        with pytest.raises(SouthboundError):
            controller(southbound, journal=journal).add_job("lamps", lamp("l1"))
        after = controller(southbound, journal=journal)
        southbound.failure = None
        assert after.jobs() == []
        assert after.add_job("lamps", lamp("l1")).number == 2

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "{}",
            '{"next_job": 1, "jobs": [7]}',
            json.dumps({"next_job": 2, "jobs": [{"number": 1, "system": "lamps", "state": {"switch": "l1"}}]}),
        ],
    )
    def test_what_is_no_journal_is_said_in_one_line(
        self, southbound: FakeSouthbound, tmp_path: Path, text: str
    ) -> None:
        path = tmp_path / "journal.json"
        path.write_text(text)
        with pytest.raises(UserError, match=r"journal\.json is no journal") as caught:
            controller(southbound, journal=Journal(path))
        assert "\n" not in str(caught.value)

    def test_jobs_of_a_system_that_is_not_served(self, southbound: FakeSouthbound, tmp_path: Path) -> None:
        path = tmp_path / "journal.json"
        path.write_text('{"next_job": 2, "jobs": [{"number": 1, "system": "doors", "state": {}}]}')
        with pytest.raises(UserError, match="has job 1 of doors, which this controller does not serve"):
            controller(southbound, journal=Journal(path))

    def test_a_journal_that_cannot_be_written(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="cannot write the journal"):
            Journal(tmp_path / "missing" / "journal.json").write(JournalContents(next_job=1))


class TestLoading:
    def test_a_service_by_its_name(self) -> None:
        (lamps,) = load_services(
            [ServiceConfig(name="lamps", service=f"{LampService.__module__}:LampService", settings={"lamps": 9})]
        )
        assert (lamps.service_class, lamps.settings) == (LampService, LampService.Settings(lamps=9))

    @pytest.mark.parametrize(
        ("service", "settings", "line"),
        [
            ("no_such_module:X", {}, "cannot load the service no_such_module:X of lamps: No module named"),
            ("json:Nothing", {}, "cannot load the service json:Nothing of lamps: .*no attribute"),
            ("json:JSONDecoder", {}, "json:JSONDecoder of lamps: it is no Service"),
            (f"{LampService.__module__}:LampService", {"lamps": "many"}, "settings of lamps: lamps: must be"),
            (f"{LampService.__module__}:LampService", {"bulbs": 1}, "settings of lamps: bulbs: is not known here"),
        ],
    )
    def test_one_that_cannot_be_loaded(self, service: str, settings: dict[str, Any], line: str) -> None:
        with pytest.raises(UserError, match=line) as caught:
            load_services([ServiceConfig(name="lamps", service=service, settings=settings)])
        assert "\n" not in str(caught.value)


class TestJournalThatCannotBeWritten:
    """A full disk: what was asked for has not happened, in the switches, in memory or in the file."""

    class Journal(Journal):
        """Takes in so many writings more."""

        room = 100

        def write(self, contents: JournalContents) -> None:
            if self.room == 0:
                raise UserError(f"cannot write the journal {self.path}: No space left on device")
            self.room -= 1
            super().write(contents)

    def test_the_job_and_its_entries_do_not_stay(self, southbound: FakeSouthbound, tmp_path: Path) -> None:
        added: list[Job] = []
        journal = self.Journal(tmp_path / "journal")
        lights = controller(southbound, journal=journal, on_job_added=added.append)
        lights.add_job("lamps", lamp("l1"))
        before, written = lights.plan(), journal.read()
        for room, applied in ((0, 1), (1, 3)):
            # The number cannot be written down, or it can and the job not.
            journal.room = room
            with pytest.raises(UserError, match="No space left"):
                lights.add_job("lamps", lamp("l2"))
            assert [job.number for job in lights.jobs()] == [1]
            assert (lights.plan(), southbound.applied[-1], len(southbound.applied)) == (before, before, applied)
        assert [job.number for job in added] == [1]
        assert written is not None
        assert journal.read() == written.model_copy(update={"next_job": 4})
        journal.room = 100
        assert lights.add_job("lamps", lamp("l2")).number == 4

    def test_a_job_that_cannot_be_forgotten_stays_whole(self, southbound: FakeSouthbound, tmp_path: Path) -> None:
        """A successor would bring it back."""
        deleted: list[Job] = []
        journal = self.Journal(tmp_path / "journal")
        lights = controller(southbound, journal=journal, on_job_deleted=deleted.append)
        lights.add_job("lamps", lamp("l1"))
        before = lights.plan()
        journal.room = 0
        with pytest.raises(UserError, match="No space left"):
            lights.delete_job("lamps", 1)
        assert [job.number for job in lights.jobs()] == [1]
        assert (lights.plan(), southbound.applied[-1], deleted) == (before, before, [])
        journal.room = 1
        lights.delete_job("lamps", 1)
        assert lights.jobs() == []

    def test_switches_that_are_away_then_go_back_when_they_return(
        self, southbound: FakeSouthbound, tmp_path: Path
    ) -> None:
        class Leaving(self.Journal):  # type: ignore[name-defined, misc]
            def write(self, contents: JournalContents) -> None:
                if self.room == 0:
                    southbound.failure = AWAY
                super().write(contents)

        journal = Leaving(tmp_path / "journal")
        lights = controller(southbound, journal=journal)
        before = lights.plan()
        journal.room = 1
        with pytest.raises(UserError, match="No space left"):
            lights.add_job("lamps", lamp("l2"))
        assert lights.jobs() == []
        southbound.failure = None
        lights.switch_changed(SwitchStatus("l1", True, "lamps"))
        assert southbound.applied[-1] == before
