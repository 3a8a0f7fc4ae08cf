"""The prompt of gradbed up without a network: completion, options of jobs, ways through a plan."""

from __future__ import annotations

import pytest

from gradbed.common.errors import UserError
from gradbed.controller.planning.legacy import openflow_plan
from gradbed.controller.planning.plan import Plan
from gradbed.controller.planning.routing import routing_plan, shortest_routes
from gradbed.experiments.configuration.options import within
from gradbed.experiments.systems import DEFAULT_SYSTEM, find_system
from gradbed.topo.registry import parse_topology

pytest.importorskip("mininet")

from gradbed.experiments.prompt.job_commands import values_of
from gradbed.experiments.prompt.traffic_commands import path_of
from gradbed.experiments.systems.aggregation.prompt import JOB_OPTIONS, AggregationPrompt

TOPOLOGY = parse_topology("leaf-spine:2,2,2")


@pytest.fixture
def prompt() -> AggregationPrompt:
    """One that has not begun to read."""
    made = AggregationPrompt.__new__(AggregationPrompt)
    made.topology = TOPOLOGY
    made.mn = [node.name for node in (*TOPOLOGY.hosts, *TOPOLOGY.switches)]
    made._jobs = {}
    return made


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("link h", ["h1", "h2", "h3", "h4"]),
        ("link l1 s", ["s1", "s2"]),
        ("link l1 nothing", []),
        ("link l1 s1 d", ["down", "delay", "duplicate"]),
        ("link l1 s1 rate 1", []),
        ("link l1 s1 rate 10 d", ["delay", "duplicate"]),
        ("job st", ["start", "stop"]),
        ("job start --ro", ["--rounds"]),
        ("restart l", ["l1", "l2"]),
        ("slots s", ["s1", "s2"]),
        ("trace h4 h1", ["h1"]),
        ("h1 ping h3", ["h3"]),
    ],
)
def test_completion(prompt: AggregationPrompt, line: str, expected: list[str]) -> None:
    begin = line.rindex(" ") + 1
    complete = getattr(prompt, f"complete_{line.split()[0]}", prompt.completedefault)
    assert complete(line[begin:], line, begin, len(line)) == expected


def test_readline_takes_dashes_for_the_ends_of_words(prompt: AggregationPrompt) -> None:
    line = "job start --window-fr"
    assert prompt.complete_job("fr", line, len(line) - 2, len(line)) == ["fragments"]


def test_every_option_of_a_job_is_a_field_and_every_command_has_help(prompt: AggregationPrompt) -> None:
    assert len(prompt.job_options) == len(JOB_OPTIONS)
    own = [name for name in prompt._commands() if not prompt._is_mininets(name)]
    assert {"job", "plan", "counters", "slots", "trace", "load", "link", "restart"} <= set(own)
    assert all(getattr(prompt, f"do_{name}").__doc__ for name in own)


def test_options_of_a_job(prompt: AggregationPrompt) -> None:
    assert values_of(["--rounds", "5", "--workers=2"], prompt.job_options) == {
        "workload__rounds": "5",
        "workload__workers": "2",
    }
    with pytest.raises(UserError, match="did you mean '--rounds'"):
        values_of(["--round", "5"], prompt.job_options)
    with pytest.raises(UserError, match="--rounds needs a value"):
        values_of(["--rounds"], prompt.job_options)


def test_options_of_up_are_fields() -> None:
    from gradbed.experiments.configuration.options import model_options

    system = find_system(DEFAULT_SYSTEM)
    found = within(model_options(system.configuration, {}), system.options.network_options)
    paths = {".".join(option.path) for option in found}
    assert all(
        any(path == each or path.startswith(f"{each}.") for path in paths) for each in system.options.network_options
    )
    assert "switches.placement" not in paths


@pytest.fixture
def plan() -> Plan:
    """Spine s1 speaks OpenFlow."""
    routes = shortest_routes(TOPOLOGY)
    made = routing_plan(TOPOLOGY, routes, {switch.name: "forward" for switch in TOPOLOGY.switches})
    return Plan(switches={**made.switches, "s1": openflow_plan(TOPOLOGY.switch("s1"), made["s1"])})


def test_the_way_through_switches_of_both_kinds(plan: Plan) -> None:
    hops = path_of(TOPOLOGY, plan, "h1", "h4")
    assert [(hop.switch, hop.next_node, hop.is_p4) for hop in hops] == [
        ("l1", "s1", True),
        ("s1", "l2", False),
        ("l2", "h4", True),
    ]
    assert [hop.next_node for hop in path_of(TOPOLOGY, plan, "h1", "h2")] == ["h2"]


def test_a_way_that_ends_or_goes_round_is_said(plan: Plan) -> None:
    nothing = plan["l2"].model_copy(update={"entries": ()})
    with pytest.raises(UserError, match="l2 has no route to h4"):
        path_of(TOPOLOGY, Plan(switches={**plan.switches, "l2": nothing}), "h1", "h4")
    back = [
        entry.model_copy(update={"params": {**entry.params, "port": TOPOLOGY.port("l2", "s1")}})
        for entry in plan["l2"].entries
    ]
    round_about = plan["l2"].model_copy(update={"entries": tuple(back)})
    with pytest.raises(UserError, match="circles: l1 -> s1 -> l2 -> s1"):
        path_of(TOPOLOGY, Plan(switches={**plan.switches, "l2": round_about}), "h1", "h4")
