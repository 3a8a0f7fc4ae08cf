from __future__ import annotations

from pathlib import Path

import pytest

from controller.jobs import Jobs, UnknownJob
from controller.journal import Journal, JournalContents
from controller.southbound.interface import SouthboundError
from controller.systems.aggregation.placement.planner import ExplicitPlacement, NoPlacement
from controller.systems.aggregation.slots import SlotRange
from switch.errors import UserError
from tests.unit.controller.fake_southbound import FakeSouthbound
from topo.fat_tree import fat_tree

TOPOLOGY = fat_tree(4)


@pytest.fixture
def southbound() -> FakeSouthbound:
    return FakeSouthbound([switch.name for switch in TOPOLOGY.switches])


def test_jobs_come_and_go_and_leave_nothing_behind(southbound: FakeSouthbound) -> None:
    added, deleted = [], []
    jobs = Jobs(TOPOLOGY, southbound, on_added=added.append, on_deleted=deleted.append)
    base = jobs.plan()
    first = jobs.add(["h2", "h5"], "h1")
    second = jobs.add(["h3", "h6"], "h1")
    assert [each.job.number for each in jobs.all()] == [1, 2]
    both = southbound.applied[-1]
    assert both == jobs.plan() == base.merged(second.plan, first.plan)
    jobs.delete(1)
    # The designated routes that both used stay for the job that is left.
    assert southbound.applied[-1] == base.merged(second.plan)
    jobs.delete(2)
    assert southbound.applied[-1] == base
    assert (added, deleted) == ([first, second], [first, second])


def test_numbers_are_not_given_out_twice(southbound: FakeSouthbound) -> None:
    jobs = Jobs(TOPOLOGY, southbound, first_job=4094)
    jobs.delete(jobs.add(["h2"], "h1").job.number)
    assert jobs.add(["h2"], "h1").job.number == 4095
    with pytest.raises(UserError, match="no job number left"):
        jobs.add(["h2"], "h1")


def test_a_job_that_the_switches_do_not_take_does_not_exist(southbound: FakeSouthbound) -> None:
    added = []
    jobs = Jobs(TOPOLOGY, southbound, on_added=added.append)
    southbound.failure = SouthboundError("e1 is not connected: gone")
    with pytest.raises(SouthboundError):
        jobs.add(["h2"], "h1")
    assert (jobs.all(), added) == ([], [])
    southbound.failure = None
    # Some switch may have heard of number 1.
    assert jobs.add(["h2"], "h1").job.number == 2
    southbound.failure = SouthboundError("e1 is not connected: gone")
    with pytest.raises(SouthboundError):
        jobs.delete(2)
    assert [each.job.number for each in jobs.all()] == [2]


def test_only_jobs_that_exist_can_be_deleted(southbound: FakeSouthbound) -> None:
    with pytest.raises(UnknownJob, match="there is no job 7"):
        Jobs(TOPOLOGY, southbound).delete(7)
    assert southbound.applied == []


def test_the_planner_can_be_named_replaced_or_turned_off(southbound: FakeSouthbound) -> None:
    jobs = Jobs(TOPOLOGY, southbound, planner=ExplicitPlacement(("c2",)))
    number = {switch.name: switch.number for switch in TOPOLOGY.switches}
    assert jobs.add(["h2"], "h1").job.designated_switches == (number["c2"], number["e1"])
    assert jobs.add(["h2"], "h1", ExplicitPlacement(("a1", "e1"))).job.designated_switches == (
        number["a1"],
        number["e1"],
    )
    assert jobs.add(["h2"], "h1", NoPlacement()).job.designated_switches == ()


def test_legacy_switches_forward_and_do_not_sum(southbound: FakeSouthbound) -> None:
    jobs = Jobs(TOPOLOGY, southbound, legacy={"a1": "openflow", "a2": "p4"}, congestion_packets=20)
    job = jobs.add(["h5", "h9"], "h1", ExplicitPlacement(("c1",)))
    assert job.job.designated_switches == (TOPOLOGY.switch("c1").number, TOPOLOGY.switch("e1").number)
    plan = southbound.applied[-1]
    assert (plan["a1"].kind, plan["a1"].program) == ("openflow", "forward")
    assert (plan["a2"].kind, plan["a2"].program) == ("p4", "forward")
    assert (plan["c1"].kind, plan["c1"].program) == ("p4", "aggregation")
    with pytest.raises(UserError, match="a1 is a legacy switch"):
        jobs.add(["h6"], "h2", ExplicitPlacement(("a1",)))
    assert [each.job.number for each in jobs.all()] == [1]
    thresholds = [entry for entry in plan["c1"].entries if entry.table == "congestion_thresholds"]
    assert [entry.params for entry in thresholds] == [{"threshold": 20}] * 4


class TestStaticSlots:
    """Ranges are given out and returned, switch by switch."""

    def jobs(self, southbound: FakeSouthbound) -> Jobs:
        return Jobs(TOPOLOGY, southbound, planner=ExplicitPlacement(("e1", "c1")), slots=32)

    def test_every_job_gets_a_range_of_its_own(self, southbound: FakeSouthbound) -> None:
        jobs = self.jobs(southbound)
        ranges = [jobs.add(["h5"], "h1", slot_policy="static", slots=count).job.slot_ranges for count in (8, 16, 8)]
        assert [each["e1"] for each in ranges] == [SlotRange(0, 8), SlotRange(8, 16), SlotRange(24, 8)]
        assert [each["c1"] for each in ranges] == [each["e1"] for each in ranges]
        with pytest.raises(UserError, match=r"no slots left at e1: the job asks for 1 in a row, 0 of 32 are free"):
            jobs.add(["h5"], "h1", slot_policy="static", slots=1)
        jobs.delete(2)
        with pytest.raises(UserError, match="asks for 17 in a row, 16 of 32 are free"):
            jobs.add(["h5"], "h1", slot_policy="static", slots=17)
        again = jobs.add(["h5"], "h1", slot_policy="static", slots=16)
        assert again.job.slot_ranges["c1"] == SlotRange(8, 16)

    def test_jobs_elsewhere_do_not_matter(self, southbound: FakeSouthbound) -> None:
        jobs = self.jobs(southbound)
        jobs.add(["h5"], "h1", slot_policy="static")
        assert jobs.add(["h6"], "h9", ExplicitPlacement(("c2",)), slot_policy="static").job.slot_ranges == {
            "c2": SlotRange(0, 32),
            "e5": SlotRange(0, 32),
        }

    @pytest.mark.parametrize("count", [0, -1, 33])
    def test_more_than_there_are_or_none(self, southbound: FakeSouthbound, count: int) -> None:
        with pytest.raises(UserError, match=f"1 to 32 slots of a switch, not {count}"):
            self.jobs(southbound).add(["h5"], "h1", slot_policy="static", slots=count)

    def test_policies_do_not_mix(self, southbound: FakeSouthbound) -> None:
        jobs = self.jobs(southbound)
        with pytest.raises(UserError, match="slot policy dynamic all jobs share"):
            jobs.add(["h5"], "h1", slots=4)
        jobs.add(["h5"], "h1")
        with pytest.raises(UserError, match="e1 serves job 1 with slot policy dynamic"):
            jobs.add(["h6"], "h2", slot_policy="static", slots=4)


class TestJournal:
    def test_a_successor_holds_the_same_plan(self, southbound: FakeSouthbound, tmp_path: Path) -> None:
        journal = Journal(tmp_path / "journal.json")
        jobs = Jobs(TOPOLOGY, southbound, journal=journal, slots=64)
        jobs.add(["h2", "h5"], "h1")
        jobs.add(["h3", "h9"], "h4", ExplicitPlacement(("c3",)), slot_policy="static", slots=8)
        jobs.add(["h6"], "h7", NoPlacement())
        jobs.delete(3)
        after = Jobs(TOPOLOGY, southbound, journal=journal, slots=64)
        assert after.plan() == jobs.plan()
        assert after.all() == jobs.all()
        assert after.add(["h6"], "h7").job.number == 4
        # Slots of the jobs before it are still taken.
        with pytest.raises(UserError, match="60 in a row, 56 of 64 are free"):
            after.add(["h8"], "h4", ExplicitPlacement(("c3",)), slot_policy="static", slots=60)

    def test_a_number_that_switches_may_know_is_not_given_out_again(
        self, southbound: FakeSouthbound, tmp_path: Path
    ) -> None:
        """As if the controller had been killed while the switches took the job."""
        journal = Journal(tmp_path / "journal.json")
        southbound.failure = SouthboundError("killed")
        with pytest.raises(SouthboundError):
            Jobs(TOPOLOGY, southbound, journal=journal).add(["h2"], "h1")
        after = Jobs(TOPOLOGY, southbound, journal=journal)
        southbound.failure = None
        assert after.all() == []
        assert after.add(["h2"], "h1").job.number == 2

    @pytest.mark.parametrize("text", ["", "{", "{}", '{"next_job": 1, "jobs": [7]}'])
    def test_what_is_no_journal_is_said_in_one_line(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "journal.json"
        path.write_text(text)
        with pytest.raises(UserError, match=r"journal\.json is no journal") as caught:
            Journal(path).read()
        assert "\n" not in str(caught.value)

    def test_a_journal_that_cannot_be_written(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="cannot write the journal"):
            Journal(tmp_path / "missing" / "journal.json").write(JournalContents(next_job=1))
