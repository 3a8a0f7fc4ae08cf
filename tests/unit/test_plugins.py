"""Topologies, placements, schedulers and compressors of other packages, and packages that cannot be loaded."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from gradbed.common.errors import UserError
from gradbed.common.modules import homes_of
from gradbed.common.plugins import plugins
from gradbed.controller.systems.aggregation.placement.lp_planner import place
from gradbed.controller.systems.aggregation.placement.options import PlannerOptions
from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem
from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.schedulers import scheduler_named, scheduler_names
from gradbed.controller.systems.shuffle.scheduling.trees import Trees
from gradbed.experiments.systems.shuffle.planning import choose_hosts
from gradbed.topo.generators import leaf_spine, star
from gradbed.topo.link import LinkModel
from tests.command import ROOT, gradbed, rows, run_well
from tests.tiny import install_tiny


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outside")
    install_tiny(folder)
    return folder


def install_broken(folder: Path, entry_points: str) -> None:
    """A package that raises when it is loaded, beside one without its module."""
    (folder / "broken").mkdir()
    (folder / "broken" / "__init__.py").write_text("raise RuntimeError('not today')\n")
    information = folder / "broken-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (information / "entry_points.txt").write_text(entry_points)


def test_a_topology(outside: Path) -> None:
    shown = run_well("topo", "show", "circle:5", PYTHONPATH=outside).stdout
    assert shown.startswith("circle:5: 5 hosts, 5 switches (5 hub), 10 links")
    refused = gradbed("topo", "show", "circle:2", PYTHONPATH=outside)
    assert (refused.returncode, refused.stderr) == (2, "gradbed: a circle has 3 to 250 switches, got 2\n")
    refused = gradbed("topo", "show", "circle:5,5", PYTHONPATH=outside)
    assert "is not of the form circle:SWITCHES with whole numbers" in refused.stderr
    assert " or circle, or the path" in gradbed("topo", "show", "circel:5", PYTHONPATH=outside).stderr


def test_a_compressor_on_a_topology(outside: Path, tmp_path: Path) -> None:
    """Of a gradient of 900 values every:3 sends 300 in each round; the run holds sums to all that was sent."""
    options = ["--workload", "synthetic", "--values", "900", "--workers", "4", "--rounds", "4", "--ratio", "none"]
    words = ["run", "compression", "--topology", "circle:5", "--compress", "every:3", *options]
    ended = run_well(*words, "--output", tmp_path, PYTHONPATH=outside)
    assert "Every result is the exact sum of the compressed gradients" in " ".join(ended.stdout.split())
    (trial,) = rows(tmp_path / "compression" / "latest" / "trials.csv")
    assert 4 * 300 < float(trial["wire_bytes"]) < 4 * 900 / 2


@pytest.mark.parametrize("exchange", ["server", "ring"])
def test_a_congestion_control_of_aggregation(outside: Path, tmp_path: Path, exchange: str) -> None:
    """Of the workers' senders: in C, which calls Python, and in Python."""
    options = [
        "--workload",
        "synthetic",
        "--values",
        "20000",
        "--workers",
        "4",
        "--rounds",
        "1",
        "--clock",
        "virtual",
    ]
    words = ["run", "aggregation", "--topology", "star:5", "--exchange", exchange, *options]
    times = {}
    for control in ("tahoe", "none"):
        run_well(*words, "--congestion-control", control, "--output", tmp_path / control, PYTHONPATH=outside)
        (trial,) = rows(tmp_path / control / "aggregation" / "latest" / "trials.csv")
        times[control] = float(trial["round_time_s"])
    assert times["none"] < times["tahoe"], "its window of one packet at first costs nothing: it was not asked"


def test_a_congestion_control_of_queue_pairs(outside: Path, tmp_path: Path) -> None:
    """The engine calls it for each packet: a window of one packet at first takes longer than a constant one."""
    words = ["run", "training", "--topology", "star:4", "--size-bytes", "1000000", "--k-min", "20"]
    times = {}
    for control in ("tahoe", "none"):
        run_well(*words, "--congestion-control", control, "--output", tmp_path / control, PYTHONPATH=outside)
        (trial,) = rows(tmp_path / control / "training" / "latest" / "trials.csv")
        times[control] = float(trial["collective_time_s"])
    assert times["none"] < times["tahoe"] < 3 * times["none"]


def test_a_collective(outside: Path, tmp_path: Path) -> None:
    """Each of four ranks sends its vector to three others, and the run checks their sums."""
    words = [
        "run",
        "training",
        "--topology",
        "star:4",
        "--size-bytes",
        "40000",
        "--contents",
        "--algorithm",
        "linear",
    ]
    run_well(*words, "--output", tmp_path, PYTHONPATH=outside)
    (trial,) = rows(tmp_path / "training" / "latest" / "trials.csv")
    assert (float(trial["messages"]), float(trial["message_bytes"])) == (4 * 3, 4 * 3 * 40_000)
    refused = gradbed("run", "training", "--algorithm", "linaer", PYTHONPATH=outside)
    assert refused.returncode == 2 and "linaer" in refused.stderr and "linear" in refused.stderr


def test_a_congestion_control_that_nobody_has(outside: Path) -> None:
    refused = gradbed("run", "training", "--congestion-control", "cubic", PYTHONPATH=outside)
    assert refused.returncode == 2
    assert "no congestion control is called 'cubic': there are none, dctcp, dcqcn, tahoe" in refused.stderr


def test_a_parameter_that_a_compressor_refuses(outside: Path) -> None:
    refused = gradbed("run", "compression", "--compress", "every:x", PYTHONPATH=outside)
    assert refused.returncode == 2
    assert refused.stderr == "gradbed: --compress: every: it takes a whole number from 1 on, such as every:4\n"


PLACED = ["run", "aggregation", "--clock", "virtual", "--topology", "leaf-spine:2,2,2", "--workers", "3"]
PLACED += ["--rounds", "2", "--workload", "synthetic", "--values", "700", "--programmable", "2", "--placement"]
SHUFFLED = ["run", "shuffle", "--plan-only", "--topology", "star:4", "--samples", "12"]
SHUFFLED += ["--storage", "0.5", "--scheduler"]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """Plug-ins of a folder in this process."""

    def install(folder: Path) -> None:
        monkeypatch.syspath_prepend(folder)
        plugins.cache_clear()

    yield install
    plugins.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tiny", "broken")]:
        del sys.modules[name]


def problem() -> AggregationProblem:
    return AggregationProblem.of(leaf_spine(2, 2, 2, LinkModel(rate_bps=10)), ["h2", "h3", "h4"], "h1")


def shuffle() -> tuple[ShuffleInstance, Trees]:
    stored = {"h1": [0, 1], "h2": [1, 2], "h3": [2, 0]}
    instance = ShuffleInstance.of(stored, {"h1": [2], "h2": [0], "h3": [1]}, [100] * 3)
    return instance, Trees(star(3), instance.hosts)


def test_a_placement(outside: Path, installed: Callable[[Path], None]) -> None:
    installed(outside)
    chosen = place(problem(), 2, "near-server")
    assert set(chosen.programmable) == {"s1", "s2"}
    planner = PlannerOptions(placement="near-server", programmable=2).planner()
    assert planner is not None
    asked = problem()
    choice = planner.choose(asked.topology, asked.routes, asked.workers, asked.server)
    assert choice.programmable == chosen.programmable and choice.rates is not None
    with pytest.raises(ValidationError, match="'near-server'"):
        PlannerOptions(placement="near-sever")


def test_a_scheduler(outside: Path, installed: Callable[[Path], None]) -> None:
    installed(outside)
    instance, trees = shuffle()
    schedule = scheduler_named("first-holder").schedule(instance, trees, seed=1)
    assert [each.sender for each in schedule.transmissions] == [1, 0, 0]
    with pytest.raises(UserError, match=r"first-holder$"):
        scheduler_named("first-hodler")


def test_a_scheduler_with_a_master_and_trees_of_its_own(tmp_path: Path, installed: Callable[[Path], None]) -> None:
    """A class is a scheduler as gradbed's own: it needs no line in the tree to get a master."""
    install_broken(tmp_path, "[gradbed.schedulers]\nfrom-master = broken:FromMaster\n")
    (tmp_path / "broken" / "__init__.py").write_text(
        "from gradbed.plugin import CodedPacket, SendQueues\n"
        "class FromMaster:\n"
        "    needs_master = True\n"
        "    def schedule(self, instance, trees, seed):\n"
        "        queues, master = SendQueues(instance, trees), len(instance.workers)\n"
        "        for worker, sample in instance.demands:\n"
        "            hops, tree = trees.best(master, 1 << worker)\n"
        "            queues.add(CodedPacket(master, ((worker, sample),), tree, hops))\n"
        "        return queues.schedule('from-master')\n"
    )
    installed(tmp_path)
    workers, master = choose_hosts(star(4), 0, "from-master")
    assert (workers, master) == (["h1", "h2", "h3"], "h4")
    stored, needed = {"h1": [0], "h2": [1], "h3": [2]}, {"h1": [1], "h2": [2], "h3": [0]}
    instance = ShuffleInstance.of(stored, needed, [100] * 3, master)
    schedule = scheduler_named("from-master").schedule(instance, Trees(star(4), instance.hosts), seed=1)
    assert [each.sender for each in schedule.transmissions] == [3, 3, 3]
    assert "from-master" in scheduler_names()


@pytest.mark.thorough
def test_both_on_the_command_line(outside: Path, tmp_path: Path) -> None:
    run_well(*PLACED, "near-server", "--output", tmp_path, PYTHONPATH=outside)
    (point,) = rows(tmp_path / "aggregation" / "latest" / "trials.csv")
    assert float(point["throughput_bps"]) > 0
    run_well(*SHUFFLED, "first-holder", "--output", tmp_path, PYTHONPATH=outside)
    (point,) = rows(tmp_path / "shuffle" / "latest" / "trials.csv")
    assert float(point["samples_per_packet"]) == 1


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("return ['s1', 's2', 'l2']", "it chose 3 switches, of at most 2"),
        ("return ['h1']", "leaf-spine:2,2,2 has no switch 'h1'"),
        ("return None", "TypeError: 'NoneType' object is not iterable"),
        ("yield 1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_placement_that_fails_is_one_line(
    code: str, reason: str, tmp_path: Path, installed: Callable[[Path], None]
) -> None:
    install_broken(tmp_path, "[gradbed.placements]\nfaulty = broken:choose\n")
    (tmp_path / "broken" / "__init__.py").write_text(f"def choose(solver, maximum, seed):\n    {code}\n")
    installed(tmp_path)
    with pytest.raises(UserError) as caught:
        place(problem(), 2, "faulty")
    assert str(caught.value) == f"the plug-in 'faulty' of gradbed.placements failed: {reason}"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("return []", "BadSchedule: worker 0 never gets sample 2; 3 demands are left"),
        ("return [(0, ((1, 2),))]", "BadSchedule: packet 0: its sender 0 lacks [2]"),
        ("return 7", "TypeError: 'int' object is not iterable"),
    ],
)
def test_a_scheduler_that_fails_is_one_line(
    code: str, reason: str, tmp_path: Path, installed: Callable[[Path], None]
) -> None:
    install_broken(tmp_path, "[gradbed.schedulers]\nfaulty = broken:plan\n")
    (tmp_path / "broken" / "__init__.py").write_text(f"def plan(instance, trees, seed):\n    {code}\n")
    installed(tmp_path)
    with pytest.raises(UserError) as caught:
        scheduler_named("faulty").schedule(*shuffle(), seed=1)
    assert str(caught.value) == f"the plug-in 'faulty' of gradbed.schedulers failed: {reason}"


@pytest.mark.parametrize("place", ["broken:it", "absent.module:it", "json:absent"])
def test_a_plugin_that_cannot_be_loaded_is_one_line(place: str, tmp_path: Path) -> None:
    groups = ("systems", "topologies", "placements", "schedulers", "compressors")
    groups += ("congestion_controls", "collectives")
    install_broken(tmp_path, "".join(f"[gradbed.{group}]\nfaulty = {place}\n" for group in groups))
    asked = {
        "systems": ["run", "faulty"],
        "topologies": ["topo", "show", "faulty:1"],
        "placements": [*PLACED, "faulty"],
        "schedulers": [*SHUFFLED, "faulty"],
        "compressors": ["run", "compression", "--compress", "faulty:1"],
        "congestion_controls": ["run", "training", "--topology", "star:2", "--congestion-control", "faulty"],
        "collectives": ["run", "training", "--topology", "star:2", "--algorithm", "faulty"],
    }
    for group, words in asked.items():
        refused = gradbed(*words, PYTHONPATH=tmp_path)
        (line,) = refused.stderr.splitlines()
        assert refused.returncode == 2
        assert f"the plug-in 'faulty' of gradbed.{group} ({place}) cannot be loaded: " in line
    for words in (["run", "--help"], ["new", "--help"], ["topo", "show", "star:2"]):
        assert run_well(*words, PYTHONPATH=tmp_path).stderr == ""


def test_a_plugin_that_fails_is_one_line(tmp_path: Path) -> None:
    install_broken(tmp_path, "[gradbed.topologies]\nfaulty = operator:truediv\n")
    refused = gradbed("topo", "show", "faulty:1", PYTHONPATH=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.startswith("gradbed: the plug-in 'faulty' of gradbed.topologies failed: TypeError: ")


def test_the_doors_for_authors_lead_somewhere() -> None:
    import gradbed.plugin
    import gradbed.torch_hook

    for name in gradbed.plugin.__all__:
        assert getattr(gradbed.plugin, name) is not None
    assert not gradbed.torch_hook.available()


def test_the_type_checker_sees_the_same_names_from_the_same_modules() -> None:
    """What is loaded late is imported for type checkers alone, which a tool that removes unused imports may undo."""
    from gradbed import plugin

    tree = ast.parse((ROOT / "api" / "plugin.py").read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == homes_of(plugin._MODULES) and sorted(seen) == sorted(plugin.__all__)
