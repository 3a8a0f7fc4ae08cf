"""What docs/compression.md says of figure 1, computed from its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.compression.trials import run
from tests.unit.documented_figures import figure_data, said

DOCUMENT = "docs/compression.md"
WORKERS = (4, 8, 16)
ROWS: Mapping[str, Mapping[str, Any]] = {
    "undisturbed, B1/N": {"pacing": "even", "rule": "corrected", "compress": "none", "faults": "[]"},
    "neither pacing nor compression": {"pacing": "none", "rule": "none", "compress": "none"},
    "pacing alone, B1/N": {"pacing": "even", "rule": "none", "compress": "none"},
    "compression alone, corrected": {"pacing": "none", "rule": "corrected", "compress": "none"},
    "both, B1/N": {"pacing": "even", "rule": "corrected", "compress": "none"},
    "both, AIMD": {"pacing": "aimd", "rule": "corrected", "compress": "none"},
    "the rule as published, B1/N": {"pacing": "even", "rule": "source", "compress": "none"},
    "`topk:0.1`, B1/N": {"pacing": "even", "rule": "none", "compress": "topk:0.1"},
    "`topk:0.01`, B1/N": {"pacing": "even", "rule": "none", "compress": "topk:0.01"},
}


def trial(name: str, workers: int) -> Mapping[str, Any]:
    at = dict(ROWS[name])
    faults = at.pop("faults", None)
    rows = figure_data("compression_1_workers").rows(workers=workers, protocol="packets", **at)
    (found,) = [row for row in rows if (str(row["faults"]) in ("", "[]", "None")) == (faults is not None)]
    return found


def table_row(name: str) -> str:
    times = (f"{1e3 * trial(name, workers)['iteration_time_s']:.3g} ms" for workers in WORKERS)
    ratio, drops = trial(name, 8)["ratio"], trial(name, 16)["queue_drops"]
    return f"| {name} | {' | '.join(times)} | {100 * ratio:.0f} % | {drops:.0f} |"


@pytest.mark.parametrize("name", ROWS)
def test_iteration_times(name: str) -> None:
    said(DOCUMENT, table_row(name))


def test_the_corrected_rule_keeps_the_time() -> None:
    longer = [
        trial("both, B1/N", workers)["iteration_time_s"] / trial("undisturbed, B1/N", workers)["iteration_time_s"]
        for workers in WORKERS
    ]
    said(DOCUMENT, "takes {:.2f}, {:.2f} and {:.2f} times as long as undisturbed".format(*longer))


@pytest.mark.parametrize(("rule", "name"), [("source", "as published"), ("corrected", "corrected")])
def test_ratios(rule: str, name: str) -> None:
    """The study's order is that of the rates, from a tenth to all."""
    rows = figure_data("compression_5_ratio").rows(rule=rule)
    cells = (f"{row['ratio']:.2g}, {1e3 * row['iteration_time_s']:.0f} ms" for row in reversed(rows))
    said(DOCUMENT, f"| {name} | {' | '.join(cells)} |")


def step(rule: str, initial_rate: str, load: float) -> Mapping[str, Any]:
    return figure_data("compression_2_step").row(rule=rule, initial_rate=initial_rate, load=load)


@pytest.mark.parametrize(("load", "words"), [(0.0, "is halved"), (0.5, "carries datagrams")])
def test_the_longest_iterations_of_the_step(load: float, words: str) -> None:
    none, iteration, run = (
        step(*at, load) for at in (("none", "iteration"), ("corrected", "iteration"), ("corrected", "run"))
    )
    cells = [
        f"{1e3 * each['longest_iteration_s']:.0f} ms, {each['longest_queue']} packets"
        for each in (none, iteration, run)
    ]
    said(DOCUMENT, f"| {words} | {' | '.join(cells)} |")


def test_queues() -> None:
    def at(pacing: str, column: str) -> list[Any]:
        return [figure_data("compression_4_queue").row(workers=n, pacing=pacing)[column] for n in (4, 8, 16, 32)]

    drops, longest = at("none", "queue_drops"), at("even", "longest_queue")
    said(DOCUMENT, "With 4, 8, 16 and 32 workers, the queue drops {}, {}, {} and {} packets".format(*drops))
    assert longest == [n - 2 for n in (4, 8, 16, 32)] and not any(at("even", "queue_drops"))
    said(DOCUMENT, "the longest queue is N - 2 packets for N workers from 4 to 32, and nothing is lost")
    assert at("active", "longest_queue") == longest
    aimd = [
        figure_data("compression_4_queue").row(workers=2, pacing="aimd")["longest_queue"],
        *at("aimd", "longest_queue"),
    ]
    said(DOCUMENT, f"{min(aimd)} to {max(aimd)} packets")
    longer = [
        100 * (slow / fast - 1)
        for slow, fast in zip(at("aimd", "iteration_time_s"), at("even", "iteration_time_s"), strict=True)
    ]
    said(DOCUMENT, f"iteration takes {min(longer):.0f} to {max(longer):.0f} % longer than at B1/N")


def test_gains_on_the_halved_link() -> None:
    """Time without compression over time with it."""

    def faster(*names: str) -> str:
        neither = "neither pacing nor compression"
        found = [
            trial(neither, workers)["iteration_time_s"] / trial(name, workers)["iteration_time_s"]
            for name in names
            for workers in WORKERS
        ]
        return f"{min(found):.2g} to {max(found):.2g}"

    corrected = faster("compression alone, corrected", "both, B1/N", "both, AIMD")
    said(DOCUMENT, f"The speedup is {corrected} with the corrected rule")
    tenth, hundredth = faster("`topk:0.1`, B1/N"), faster("`topk:0.01`, B1/N")
    said(DOCUMENT, f"the speedup is {tenth} with `topk:0.1` and {hundredth} with `topk:0.01`")


COMPRESSORS = (
    "none",
    "topk:0.01",
    "randomk:0.01",
    "threshold:0.02",
    "quantise:8",
    "quantise:4",
    "sign",
    "powersgd:2",
)


def compressed(name: str, *, error_feedback: bool = True) -> Mapping[str, Any]:
    return figure_data("compression_3_accuracy").row(compress=name, error_feedback=error_feedback)


def accuracy_row(name: str) -> str:
    kept, forgotten = compressed(name), compressed(name, error_feedback=False)
    without = "" if name == "none" else f"{100 * forgotten['accuracy']:.1f} %"
    columns = (f"{kept['wire_bytes']:,.0f}", f"{100 * kept['accuracy']:.1f} %", without)
    return f"| `{name}` | {' | '.join(columns)} | {1e3 * kept['iteration_time_s']:.2f} ms |"


@pytest.mark.parametrize("name", COMPRESSORS)
def test_accuracy_by_compressor(name: str) -> None:
    said(DOCUMENT, " ".join(accuracy_row(name).split()))


def test_gains_of_compressors() -> None:
    times = {
        name: compressed("none")["iteration_time_s"] / compressed(name)["iteration_time_s"] for name in COMPRESSORS
    }
    said(
        DOCUMENT,
        f"the speedup for the digits is {times['topk:0.01']:.1f} with `topk:0.01` and {times['quantise:4']:.1f} with "
        "`quantise:4` (figure 3)",
    )
    accuracies = [f"{100 * compressed(name)['accuracy']:.1f} %" for name in ("topk:0.01", "none")]
    said(DOCUMENT, "With 1 % kept it reaches {} accuracy instead of {} after 60 rounds".format(*accuracies))


@pytest.mark.nightly
def test_accuracies_of_longer_trainings() -> None:
    """Of one seed, with the network of figure 3."""

    def accuracy(compress: str, rounds: int) -> str:
        found = run(
            topology={"kind": "star:9", "link": {"rate_mbps": 100, "delay_us": 50, "queue_packets": 1000}},
            ratio={"rule": "none"},
            workload={"kind": "training", "workers": 8, "rounds": rounds, "hidden_units": 32},
            compression={"compress": compress},
        )
        assert found.failures == []
        return f"{100 * float(str(found.metrics['accuracy'])):.1f} %"

    none, hundredth = accuracy("none", 240), accuracy("topk:0.01", 240)
    assert none == hundredth
    said(DOCUMENT, f"With seed 1 both reach {none} after 240 rounds.")
    said(
        DOCUMENT,
        f"With 0.1 % kept, two or three values, that seed reaches {accuracy('topk:0.001', 60)} after 60 rounds and "
        f"{accuracy('topk:0.001', 240)} after 240",
    )
