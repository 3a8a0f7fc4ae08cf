from __future__ import annotations

import pytest

from controller.jobs import Jobs, UnknownJob
from controller.planning.placement import ExplicitPlacement
from controller.southbound.interface import SouthboundError
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
    assert [job.job for job in jobs.all()] == [1, 2]
    both = southbound.applied[-1]
    assert both == jobs.plan() == base.merged(second.plan, first.plan)
    jobs.delete(1)
    # The designated routes that both used stay for the job that is left.
    assert southbound.applied[-1] == base.merged(second.plan)
    jobs.delete(2)
    assert southbound.applied[-1] == base
    assert (added, deleted) == ([first, second], [first, second])


def test_numbers_are_not_given_out_twice(southbound: FakeSouthbound) -> None:
    jobs = Jobs(TOPOLOGY, southbound, first_job=65534)
    jobs.delete(jobs.add(["h2"], "h1").job)
    assert jobs.add(["h2"], "h1").job == 65535
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
    assert jobs.add(["h2"], "h1").job == 1
    southbound.failure = SouthboundError("e1 is not connected: gone")
    with pytest.raises(SouthboundError):
        jobs.delete(1)
    assert [job.job for job in jobs.all()] == [1]


def test_only_jobs_that_exist_can_be_deleted(southbound: FakeSouthbound) -> None:
    with pytest.raises(UnknownJob, match="there is no job 7"):
        Jobs(TOPOLOGY, southbound).delete(7)
    assert southbound.applied == []


def test_the_placement_can_be_named_replaced_or_turned_off(southbound: FakeSouthbound) -> None:
    jobs = Jobs(TOPOLOGY, southbound, placement=ExplicitPlacement(("c2",)))
    number = {switch.name: switch.number for switch in TOPOLOGY.switches}
    assert jobs.add(["h2"], "h1").designated_switches == (number["c2"],)
    assert jobs.add(["h2"], "h1", aggregation_switches=["a1", "e1"]).designated_switches == (
        number["a1"],
        number["e1"],
    )
    assert jobs.add(["h2"], "h1", aggregation=False).designated_switches == ()
    with pytest.raises(UserError, match="aggregation is off"):
        jobs.add(["h2"], "h1", aggregation=False, aggregation_switches=["e1"])
