"""Studies as a program makes them: the same trials, refusals and results as of the YAML and the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import networkx as nx
import pandas as pd
import pytest

import gradbed as gb
from gradbed.experiments.study.loading import load_study
from gradbed.studies import loaded
from tests.conftest import GradbedHere

ROUTES = """
tables:
  routes:
    - routes: shortest
      match: {hdr.ipv4.dst_addr: $dst_ip}
      action: forward
      params: {port: $port, dst_mac: $next_mac}
"""
ROUTER = Path(__file__).resolve().parents[3] / "cli" / "templates" / "program" / "program.p4"

STUDY = f"""
name: mine
system: workload
topology: {{kind: "leaf-spine:2,1,1", link: {{rate_mbps: 20}}}}
program: {{path: {ROUTER}, entries: [entries.yaml]}}
traffic: {{duration_ms: 20, pattern: all-to-all}}
sweep: {{product: {{traffic.load: [0.1, 0.4]}}}}
repetitions: 2
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "entries.yaml").write_text(ROUTES)
    (tmp_path / "study.yaml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def study(**changes: object) -> gb.Study:
    given: dict[str, object] = {
        "name": "mine",
        "topology": gb.leaf_spine(2, 1, 1, rate_mbps=20),
        "program": gb.Program(ROUTER, entries="entries.yaml"),
        "traffic": {"duration_ms": 20, "pattern": "all-to-all"},
        "sweep": {"traffic.load": [0.1, 0.4]},
        "repetitions": 2,
    }
    return gb.Study(**{**given, **changes})  # type: ignore[arg-type]


def test_it_is_the_study_that_a_file_describes(place: Path) -> None:
    made, read = loaded(study()), load_study(place / "study.yaml")
    assert made.trials == read.trials
    assert (made.head, made.path) == (read.head, None)
    assert len(study()) == 4


@pytest.mark.thorough
def test_its_results_are_frames_of_the_rows_that_are_stored(place: Path) -> None:
    results = study(figures={"loads": {"x": "traffic.load", "y": "p50_us"}}).run(jobs=1)
    assert (results.ok, results.failures, results.verdict) == (True, [], "simulated")
    frame = results.frame
    assert list(frame["traffic.load"]) == [0.1, 0.1, 0.4, 0.4]
    assert list(frame["seed"]) == [1, 2, 1, 2]
    stored = pd.read_csv(results.folder / "trials.csv")
    pd.testing.assert_series_equal(frame["p99_us"], stored["p99_us"])
    assert frame["flow_p99_us"].isna().all()
    assert results.folder.parent == Path("results/mine")
    hosts = results.table("hosts")
    assert {"traffic.load", "repetition"} <= set(hosts.columns)
    assert len(hosts) == 4 * 2
    with pytest.raises(gb.UserError, match=r"no table 'hsots'; they have: .*hosts"):
        results.table("hsots")
    assert list(results.figures()) == ["loads"]
    drawn = results.plot("traffic.load", "p99_us", name="mine")
    assert (results.folder / "mine.png") in drawn.paths
    with pytest.raises(gb.UserError, match="no column 'p99us'; did you mean 'p99_us'"):
        results.plot("traffic.load", "p99us")
    again = gb.load_results("results/mine/latest")
    pd.testing.assert_frame_equal(again.frame, frame)


def test_a_check_that_does_not_hold_is_a_failure(place: Path) -> None:
    results = study(sweep=None, repetitions=1, expect={"received_packets": "<1"}).run()
    assert not results.ok
    assert len(results.failures) == 1
    assert "received_packets" in results.failures[0]


def test_entries_and_graphs_may_be_values(place: Path) -> None:
    graph = nx.path_graph(["s1", "s2"])
    graph.add_node("a", kind="host")
    graph.add_node("b", kind="host")
    graph.add_edges_from([("a", "s1"), ("b", "s2", {"delay_us": 700})])
    net = gb.from_networkx(graph, rate_mbps=20)
    assert (net.hosts, net.switches) == (["a", "b"], ["s1", "s2"])
    import yaml

    program = gb.Program(ROUTER, entries=yaml.safe_load(ROUTES))
    results = study(topology=net, program=program, sweep=None, repetitions=1).run()
    assert results.ok
    # Two links of 50 us, and one of 700.
    assert 800 < results.frame["p50_us"][0] < 2500


def test_topologies_can_be_swept(place: Path) -> None:
    swept = study(sweep={"topology": [gb.star(2), gb.star(3)]}, repetitions=1)
    assert [trial.coordinates for trial in loaded(swept).trials] == [
        {"topology.kind": "star:2"},
        {"topology.kind": "star:3"},
    ]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"traffic": {"laod": 0.1}}, "traffic: there is no 'laod' here; did you mean 'load'?"),
        ({"sweep": {"traffic.load": [0.1, -1]}}, "traffic.load: must be more than 0, got -1"),
        ({"sweep": {"trafic.load": [0.1]}}, "there is no 'trafic' here; did you mean 'traffic'?"),
        ({"sweep": {"traffic.load": 0.1}}, "sweep.traffic.load: a list of values is expected, got 0.1"),
        ({"trafic": {}}, "a study has no section 'trafic'; did you mean 'traffic'?"),
        ({"system": "worklaod", "program": None}, "no system is called 'worklaod'; did you mean 'workload'?"),
        ({"system": "ndn"}, "the system ndn has programs of its own: program goes with workload"),
        ({"clock": "vritual"}, "clock: must be one of 'real', 'virtual', got 'vritual'"),
    ],
)
def test_mistakes_are_one_line_when_the_study_is_made(place: Path, changes: dict[str, object], line: str) -> None:
    with pytest.raises(gb.UserError) as told:
        study(**changes)
    assert str(told.value) == line


def test_values_that_are_no_network_or_program() -> None:
    with pytest.raises(gb.UserError, match="fat-tree"):
        gb.fat_tree(3)
    with pytest.raises(gb.UserError, match="rate_mpbs"):
        gb.star(2, rate_mpbs=1)
    with pytest.raises(gb.UserError, match=r"cannot read nothing\.p4: there is no such file"):
        gb.Program("nothing.p4")


def test_the_command_line_says_the_same(place: Path, gradbed_here: GradbedHere) -> None:
    text = (place / "study.yaml").read_text().replace("duration_ms", "duration_s")
    (place / "study.yaml").write_text(text)
    ended = gradbed_here("run", "study", "study.yaml")
    with pytest.raises(gb.UserError) as told:
        study(traffic={"duration_s": 20, "pattern": "all-to-all"})
    assert ended.err.strip().endswith(f": {told.value}")


SCRIPT = """
import gradbed as gb
print(len(gb.Study.from_file("study.yaml").run(jobs=2)))
"""


@pytest.mark.thorough
def test_a_script_needs_no_guard_for_trials_side_by_side(place: Path) -> None:
    """Each of the processes that run trials would otherwise run the script again."""
    (place / "script.py").write_text(SCRIPT)
    ended = subprocess.run(
        [sys.executable, "script.py"], capture_output=True, text=True, timeout=120, check=False, cwd=place
    )
    assert (ended.returncode, ended.stdout) == (0, "4\n"), ended.stderr


LOADED = """
import sys, gradbed
print(*[name for name in ("numpy", "pandas", "networkx", "scapy", "yaml", "pydantic") if name in sys.modules])
"""


def test_importing_it_loads_nothing_heavy() -> None:
    ended = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "\n"


def test_every_public_name_is_there_and_documented() -> None:
    for name in gb.__all__:
        assert getattr(gb, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'stduy'"):
        gb.stduy  # type: ignore[attr-defined]  # noqa: B018


def test_a_users_modules_may_have_the_names_of_ours(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import gradbed, topo\nprint(gradbed.star(2).kind, topo.x)\n")
    for name in ("topo", "common", "hosts"):
        (tmp_path / f"{name}.py").write_text("x = 1\n")
    ended = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "star:2 1\n"), ended.stderr
