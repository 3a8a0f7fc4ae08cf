"""What docs/shuffle.md says of its figures, computed from their data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gradbed.controller.systems.shuffle.scheduling.instance import epochs
from gradbed.controller.systems.shuffle.scheduling.schedulers import scheduler_named
from gradbed.controller.systems.shuffle.scheduling.trees import Trees
from gradbed.experiments.systems.shuffle.figures import lee_average
from gradbed.topo.generators import star
from tests.unit.documented_figures import figure_data, said

PAGE = "docs/shuffle.md"
SHARES = (0.07, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7)
K4 = "fat-tree:4"

Row = Mapping[str, Any]


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %"


def planned(scheduler: str, storage: float, kind: str = K4) -> Row:
    return figure_data("shuffle_1_hops").row(scheduler=scheduler, storage=storage, kind=kind)


def timed(scheduler: str, storage: float) -> float:
    return float(figure_data("shuffle_2_time").row(scheduler=scheduler, storage=storage)["shuffle_time_s"])


def on_trees(scheduler: str, rule: str) -> Row:
    return figure_data("shuffle_3_trees").row(scheduler=scheduler, tree_choice=rule)


def hops_beside_the_nearest() -> str:
    little, half = (
        percent(planned("improved", share)["hops"], planned("unicast-nearest", share)["hops"])
        for share in (0.07, 0.5)
    )
    return (
        f"On k=4 it takes {little} of the hops of unicast from the nearest holder at a storage fraction of 0.07, "
        f"and {half} at 0.5."
    )


def processor_times() -> str:
    data = figure_data("shuffle_4_growth")
    most = data.row(scheduler="improved", kind="fat-tree:8", samples=50_000)["schedule_s"]
    source, ours = (
        data.row(scheduler=each, kind="fat-tree:8", samples=1000)["schedule_s"] for each in ("hop-aware", "improved")
    )
    return (
        f"50,000 samples on k=8 take {most:.0f} s; the bar shows the goal of 60 s. For 1,000 samples there, the "
        f"source's scheduler takes {source:.1f} s and ours {ours:.1f} s."
    )


def accuracies() -> str:
    data = figure_data("shuffle_6_accuracy")
    (any_local, any_global), (few_local, few_global) = (
        [f"{100 * data.row(first=first)[f'accuracy_{kind}']:.1f} %" for kind in ("local", "global")]
        for first in ("random", "sorted")
    )
    return (
        f"local shuffling is as good as global shuffling: test accuracy is {any_local} and {any_global} at the end. "
        "If each worker begins with only a few of the ten digits, averaged weights learn far more slowly with local "
        f"shuffling: {few_local} instead of {few_global}."
    )


def hops_of_blind_coding() -> str:
    blind, nearest = planned("coded-largest", 0.3), planned("unicast-nearest", 0.3)
    return (
        f"Network-oblivious coding (`coded-largest`) takes {percent(blind['hops'], nearest['hops'])} of the hops of "
        "unicast from the nearest holder at 0.3. But it sends "
        f"{percent(blind['packets_per_sample'], nearest['packets_per_sample'])} of its packets"
    )


def hops_above_the_bound() -> str:
    rows = [planned("improved", share, kind) for share in SHARES for kind in (K4, "fat-tree:8", "bcube:4,1")]
    most = max(row["hops"] / row["bound_hops"] for row in rows)
    return f"Our scheduler takes up to {most:.1f} times the greater bound"


def packets_beside_theory() -> str:
    master, ours, blind = (
        planned(name, 0.3)["packets_per_sample"] for name in ("coded-master", "improved", "coded-largest")
    )
    return (
        f"With 0.3 of the samples stored the master sends {master:.2f} packets for each sample of the data set. "
        f"Workers send {blind:.2f} with `coded-largest` and {ours:.2f} with `improved`."
    )


def packets_with_enough_samples() -> str:
    *workers, master = (host.name for host in star(6).hosts)
    instance = next(epochs(workers, [1] * 2000, 0.3, seed=1, master=master))
    schedule = scheduler_named("coded-master").schedule(instance, Trees(star(6), instance.hosts), seed=1)
    beside = len(schedule.transmissions) / 2000 / lee_average(5, 0.3)
    return f"5 workers and 2,000 samples take {beside:.1f} times Lee and others' average"


def times_of(scheduler: str) -> list[str]:
    return [
        percent(timed(scheduler, share), timed(unicast, share))
        for share in (0.3, 0.5)
        for unicast in ("unicast-random", "unicast-nearest")
    ]


def times_of_ours() -> str:
    some_any, some_nearest, half_any, half_nearest = times_of("improved")
    return (
        f"| our scheduler | unicast from any holder | {some_any} | {half_any} | "
        f"| our scheduler | unicast from the nearest holder | {some_nearest} | {half_nearest} |"
    )


def times_of_the_source() -> str:
    some_any, some_nearest, half_any, half_nearest = times_of("hop-aware")
    return (
        f"| the source's scheduler | unicast from any holder | {some_any} | {half_any} | "
        f"| the source's scheduler | unicast from the nearest holder | {some_nearest} | {half_nearest} |"
    )


def times_of_blind_coding() -> str:
    shown = [percent(timed("coded-largest", share), timed("improved", share)) for share in (0.3, 0.5)]
    return f"| network-oblivious coding | our scheduler | {shown[0]} | {shown[1]} |"


def times_beside_the_master() -> str:
    (low, high), (source_low, source_high) = (
        [percent(timed(name, share), timed("coded-master", share)) for share in (0.07, 0.5)]
        for name in ("improved", "hop-aware")
    )
    return (
        f"Relative to the classical coded shuffle with a master, ours takes {low} of the time at a storage fraction "
        f"of 0.07 and {high} at 0.5 (the source's: {source_low} and {source_high})."
    )


def saved_beside_any_unicast() -> str:
    found = [1 - timed("improved", share) / timed("unicast-random", share) for share in (0.2, 0.3, 0.4, 0.5)]
    return (
        f"At storage fractions of 0.2 to 0.5, ours saves {100 * min(found):.0f} to {100 * max(found):.0f} % "
        "of the time of unicast from any holder, which"
    )


def saved_beside_blind_coding() -> str:
    saved = {share: 1 - timed("improved", share) / timed("coded-largest", share) for share in (0.2, 0.3, 0.4, 0.5)}
    assert saved.pop(0.2) < 0
    return (
        f"Relative to network-oblivious coding it saves {100 * min(saved.values()):.0f} to "
        f"{100 * max(saved.values()):.0f} % at 0.3 to 0.5, and nothing at 0.2."
    )


def samples_in_a_packet() -> str:
    found = [planned("improved", share)["samples_per_packet"] for share in (0.2, 0.3, 0.4, 0.5)]
    return f"packets combine only {min(found):.1f} to {max(found):.1f} samples at 0.2 to 0.5."


def shares_of_one_core() -> str:
    first, spread, hashed = (
        on_trees("hop-aware", rule)["top_switch_share"] for rule in ("first", "least-loaded", "ecmp")
    )
    return (
        f"With `first` one core switch sends everything ({percent(first, 1)} of the source's packets). "
        f"With `ecmp` the busiest of four sends {percent(hashed, 1)}, with `least-loaded` {percent(spread, 1)}."
    )


def times_by_rule() -> str:
    rows = []
    for name, words in (
        ("unicast-nearest", "unicast from the nearest holder"),
        ("coded-largest", "network-oblivious coding"),
        ("hop-aware", "the source's scheduler"),
        ("improved", "our scheduler"),
    ):
        times = [on_trees(name, rule)["shuffle_time_s"] for rule in ("first", "ecmp", "least-loaded")]
        rows.append(f"| {words} | {' | '.join(f'{1e3 * time:.1f} ms' for time in times)} |")
    return " ".join(rows)


def waits() -> str:
    rows = figure_data("shuffle_5_waits").rows()
    planned_s, longest_s = (max(row[name] for row in rows) for name in ("planned_wait_s", "max_wait_s"))
    return f"The longest wait is {1e3 * planned_s:.1f} ms in the schedule and {1e3 * longest_s:.2f} ms on the network"


def hops_by_threshold() -> str:
    hops = [row["hops"] for row in figure_data("shuffle_5_waits").rows()]
    return f"({min(hops):.0f} to {max(hops):.0f})"


SENTENCES: list[Callable[[], str]] = [
    hops_beside_the_nearest,
    processor_times,
    accuracies,
    hops_of_blind_coding,
    hops_above_the_bound,
    packets_beside_theory,
    packets_with_enough_samples,
    times_of_ours,
    times_of_the_source,
    times_of_blind_coding,
    times_beside_the_master,
    saved_beside_any_unicast,
    saved_beside_blind_coding,
    samples_in_a_packet,
    shares_of_one_core,
    times_by_rule,
    waits,
    hops_by_threshold,
]


@pytest.mark.thorough
@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_is_what_the_data_say(sentence: Callable[[], str]) -> None:
    said(PAGE, sentence())


@pytest.mark.thorough
def test_ours_takes_the_fewest_hops_without_a_master_everywhere() -> None:
    for kind in (K4, "fat-tree:8", "bcube:4,1"):
        for share in SHARES:
            ours = planned("improved", share, kind)["hops"]
            others = figure_data("shuffle_1_hops").rows(storage=share, kind=kind)
            assert all(ours <= row["hops"] for row in others if row["shuffle.scheduler"] != "coded-master")


def test_no_line_crosses_its_bound() -> None:
    assert all(row["bound_hops"] <= row["hops"] for row in figure_data("shuffle_1_hops").rows())


def test_waits_stay_below_the_threshold() -> None:
    """In the schedule, and but for the receiver's microsecond on the network."""
    for row in figure_data("shuffle_5_waits").rows():
        threshold_s = 1e-6 * row["shuffle.threshold_us"]
        assert row["planned_wait_s"] <= threshold_s and row["max_wait_s"] <= threshold_s + 2e-6


def test_the_source_saves_next_to_nothing_beside_any_unicast() -> None:
    """At most 1 % of the time where up to 0.5 of the samples are stored."""
    for share in SHARES[:-1]:
        assert timed("hop-aware", share) > 0.99 * timed("unicast-random", share)
