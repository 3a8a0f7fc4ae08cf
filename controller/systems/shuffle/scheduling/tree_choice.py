"""Which of the trees that are equally short for a packet it takes: one rule for the packets of all schedulers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, get_args

from gradbed.controller.systems.shuffle.scheduling.instance import Instance
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule, Transmission
from gradbed.controller.systems.shuffle.scheduling.trees import Trees, bits_of

TreeChoice = Literal["least-loaded", "ecmp", "first"]
"""least-loaded: the tree whose busiest link carries fewest bytes of the schedule so far, then the next busiest, and
so on. ecmp: any, by a hash of sender and receivers, as switches choose equal-cost paths for a flow. first: always the
first."""

TREE_CHOICES: tuple[TreeChoice, ...] = get_args(TreeChoice)


def with_trees_chosen(schedule: Schedule, instance: Instance, trees: Trees, rule: TreeChoice, seed: int) -> Schedule:
    """The same packets with as many hops, each on the tree that the rule chooses of its sender's shortest ones.

    A packet for which none of these is short enough stays on the tree that its scheduler made for it.
    """
    if rule == "first":
        return schedule
    bytes_on: Counter[tuple[str, str]] = Counter()
    chosen = []
    for each in schedule.transmissions:
        candidates = list(_candidates(each, trees))
        if not candidates:
            tree = each.tree
        elif rule == "ecmp":
            flow = each.sender, *sorted(worker for worker, _ in each.receivers)
            tree = random.Random(f"{seed} {flow}").choice(candidates)
        else:
            ends = instance.hosts[each.sender], [instance.hosts[worker] for worker, _ in each.receivers]
            links = {number: trees.trees[number].branches(*ends) for number in candidates}
            tree = min(links, key=lambda number: sorted((bytes_on[link] for link in links[number]), reverse=True))
            size_bytes = max(instance.sizes_bytes[sample] for sample in each.samples)
            bytes_on.update(dict.fromkeys(links[tree], size_bytes))
        chosen.append(replace(each, tree=tree))
    return replace(schedule, transmissions=tuple(chosen))


def _candidates(transmission: Transmission, trees: Trees) -> Iterator[int]:
    receivers = bits_of(worker for worker, _ in transmission.receivers)
    for number in trees.of_sender[transmission.sender]:
        if trees.hops_on(number, transmission.sender, receivers) == transmission.hops:
            yield number
