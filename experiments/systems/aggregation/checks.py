"""Check a phase beyond its sums: counters of switches, slots, hosts and links against each other, times against
bounds.

Nothing here is computed by the code that it checks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

from gradbed.experiments.configuration.faults import restarted_switches
from gradbed.experiments.conservation.counts import Counts, Tally
from gradbed.experiments.phases import PhaseResult
from gradbed.experiments.systems.aggregation.metrics import event_at
from gradbed.experiments.systems.aggregation.phase import AggregationPhase
from gradbed.experiments.tables.files import Row
from gradbed.formats.aggregation import Designation

SLOT_OWNER = "AggregationIngress.aggregation.slot_owner"
"""Register of an aggregation switch: per slot, whether it is held, and the packet that it holds or held last."""
HELD = 1 << 63
SIGMAS = 7
"""Number of standard deviations by which the number of slots ever used may differ from its mean."""
REAL_TIME_ERROR = 0.05
"""Fraction by which a round on the real clock may appear shorter than its lower bound: agents read their clock
late.
"""

ONE_OF_THESE = (
    "claimed", "added", "duplicate", "collision", "stale", "overlap", "resend_summed", "resend_single", "reclaimed",
    "contention", "overflow", "repeated",
)  # fmt: skip
"""Events that exclude each other: a packet has exactly one of these outcomes at its slot.

A resend that is added first counts as added as well.
"""


def undisturbed(phase: AggregationPhase, found: PhaseResult) -> bool:
    """Return whether the phase had no faults, and links neither lost, duplicated nor dropped a packet."""
    return not phase.task.configuration.faults and all(
        effect.lost_packets == effect.duplicates.packets == 0 for effect in found.network.counts.effects.values()
    )


def lossless(phase: AggregationPhase, found: PhaseResult) -> bool:
    """Return whether the phase had no faults and links lost no packet; they may have duplicated some."""
    return not phase.task.configuration.faults and not any(
        effect.lost_packets for effect in found.network.counts.effects.values()
    )


def _sums(phase: AggregationPhase) -> bool:
    return phase.exchange == "server" and any(each.designations for each in phase.configs)


def _events(counts: Counts, switch: str) -> dict[str, int]:
    """Return the packets of each event at one switch, summed over all jobs."""
    found: dict[str, int] = {}
    for index, tally in counts.counters.get(switch, {}).get("events", {}).items():
        _, name = event_at(index)
        found[name] = found.get(name, 0) + tally.packets
    return found


def _switches(phase: AggregationPhase) -> list[str]:
    """Return the aggregation switches that counted without a restart."""
    restarted = restarted_switches(phase.task.configuration.faults)
    return [name for name in phase.shared.summing if name not in restarted] if _sums(phase) else []


def wrong_slots(phase: AggregationPhase, found: PhaseResult) -> Iterator[str]:
    """Report switches whose held slots do not match their events.

    A fragment that claims a slot releases it by its ACK, or a resend takes it along. Slots that are left must be held
    at the end, and none may be left where no packet was lost.
    """
    for switch in _switches(phase):
        events = _events(found.network.counts, switch)
        left = events.get("claimed", 0) - events.get("released", 0) - events.get("resend_summed", 0)
        slots = found.network.registers.get((switch, SLOT_OWNER), {})
        held = sum(1 for owner in slots.values() if owner and owner & HELD)
        if None not in slots.values() and held != left:
            yield (
                f"{switch} holds {held} slots; {events.get('claimed', 0)} were claimed, {events.get('released', 0)} "
                f"released by an ACK and {events.get('resend_summed', 0)} taken along by a resend"
            )
        elif left and lossless(phase, found):
            yield f"{switch} still holds {left} slots at the end, though no packet was lost"


def wrong_events(phase: AggregationPhase, found: PhaseResult) -> Iterator[str]:
    """Report events that contradict each other.

    A claim completes at most once, slots are exhausted only where a packet was refused, and a single job never
    contends with another one.
    """
    for switch in _switches(phase):
        events = _events(found.network.counts, switch)
        claims = events.get("claimed", 0) + events.get("reclaimed", 0)
        refused = events.get("collision", 0) + events.get("contention", 0)
        if events.get("completed", 0) > claims:
            yield f"{switch} completed {events['completed']} sums of {claims} claims"
        if events.get("exhaustion", 0) > refused:
            yield (
                f"{switch} counted {events['exhaustion']} times that all slots were held, refused {refused} packets"
            )
        if len(phase.jobs) == 1 and events.get("contention"):
            yield f"{switch} counted {events['contention']} packets that met another job, and there is one job"


def wrong_claims(phase: AggregationPhase, found: PhaseResult) -> Iterator[str]:
    """Report more claims, additions or repeated sums than the fragments and fan-ins allow.

    A fragment claims a slot once, a claim takes in each worker of its fan-in once, and a complete sum is repeated for
    the lowest-numbered of these workers alone. With a single slot, each refused packet finds all slots held.
    """
    doubled = any(effect.duplicates.packets for effect in found.network.counts.effects.values())
    fragments = sum(
        config.fragments_per_round * len(rounds) for config, rounds in zip(phase.configs, phase.rounds, strict=True)
    )
    for switch in _switches(phase):
        number = phase.shared.topology.switch(switch).number
        events = Counter(_events(found.network.counts, switch))
        claims = events["claimed"] + events["reclaimed"]
        if len(phase.jobs) == 1 and events["claimed"] > fragments + events["reclaimed"]:
            yield f"{switch} counted {events['claimed']} claims of slots, there are {fragments} fragments"
        unfinished = max(0, claims - events["completed"] - events["resend_summed"])
        most = claims * (_fan_in(phase, number) - 1) - unfinished
        if events["added"] > most:
            yield f"{switch} added {events['added']} gradients to those that claimed a slot, fan-ins allow {most}"
        again = None if doubled else _sent_again_by_the_lowest(phase, found, number)
        if again is not None and events["repeated"] > again:
            yield f"{switch} repeated {events['repeated']} sums, the workers that it does so for sent {again} again"
        refused = events["collision"] + events["contention"]
        if phase.shared.configuration.switches.slots == 1 and events["exhaustion"] != refused:
            yield (
                f"{switch} refused {refused} packets, counted {events['exhaustion']} times that its one slot was held"
            )


def _fan_in(phase: AggregationPhase, number: int) -> int:
    """Return the largest fan-in that the labels give the switch of this number."""
    return max(
        (
            fan_in
            for config in phase.configs
            for label in chain(*config.designations)
            for switch, fan_in in (
                (label.switch_number, label.fan_in),
                (label.next_switch, label.next_fan_in),
            )
            if switch == number
        ),
        default=1,
    )


def _sent_again_by_the_lowest(phase: AggregationPhase, found: PhaseResult, number: int) -> int | None:
    """Return the gradients resent by the lowest-numbered worker that the switch waits for, over all labels.

    Returns:
        None where a worker has not reported what it sent.
    """
    if phase.task.configuration.faults:
        return None
    total = 0
    for config in phase.configs:
        lowest = {
            min(worker for worker, label in enumerate(labels) if label and number in _switches_of(label))
            for labels in zip_longest(*config.designations)
            if any(label and number in _switches_of(label) for label in labels)
        }
        for worker in lowest:
            final = found.agents.final.get((config.job, f"worker {worker}"))
            if final is None or "timeout_resends" not in final:
                return None
            total += final["timeout_resends"] + final["early_resends"]
    return total


def _switches_of(label: Designation) -> tuple[int, int]:
    return label.switch_number, label.next_switch


def wrong_consumption(phase: AggregationPhase, found: PhaseResult) -> Iterator[str]:
    """Report switches that consumed other numbers of gradients than their slots took in without completing a sum."""
    for switch in _switches(phase):
        if any(
            effect.queue_drops.packets
            for (sender, _), effect in found.network.counts.effects.items()
            if sender == switch
        ):
            continue  # in front of the counter
        came, left = (_packets(found.network.counts, switch, f"gradient_{way}") for way in ("in", "out"))
        events = _events(found.network.counts, switch)
        most = sum(events.get(name, 0) for name in ("claimed", "reclaimed", "added", "duplicate"))
        most -= events.get("completed", 0)
        least = most - events.get("resend_summed", 0)
        if not least <= came - left <= most:
            yield (
                f"{switch} got {came} gradients and sent {left} on, its slots took in {most}"
                f"{f' or at least {least}' if least < most else ''}"
            )


def _packets(counts: Counts, switch: str, counter: str) -> int:
    return sum(tally.packets for tally in counts.counters.get(switch, {}).get(counter, {}).values())


def wrong_outcomes(phase: AggregationPhase, found: PhaseResult) -> Iterator[str]:
    """Report aggregation switches with fewer or more outcomes than gradients that came to them.

    A packet has one outcome at its aggregation switch. Expected are the packets that workers sent with the label, and
    those that preceding aggregation switches passed on. Only undisturbed phases whose workers have one label each are
    checked.
    """
    labels = [own[0] for each in phase.configs for own in each.designations if len(own) == 1]
    dealt = [own for each in phase.configs for own in each.designations]
    if not undisturbed(phase, found) or len(labels) < len(dealt) or not _sums(phase):
        return
    numbers = {phase.shared.topology.switch(name).number: name for name in _switches(phase)}
    direct: dict[str, int] = dict.fromkeys(numbers.values(), 0)
    sent: dict[str, int] = dict.fromkeys(numbers.values(), 0)
    for config in phase.configs:
        for worker, own in enumerate(config.designations):
            final = found.agents.final.get((config.job, f"worker {worker}"))
            first = numbers.get(own[0].switch_number)
            if final is None:
                return
            if first is not None:
                sent[first] += final["gradient_sent"]["frames"]
                direct[first] += final.get("direct_copies", 0)
    nexts: dict[str, set[str]] = {}
    for label in labels:
        first, after = numbers.get(label.switch_number), numbers.get(label.next_switch)
        if first is not None and label.next_switch:
            nexts.setdefault(first, set()).add(after or "")
    for switch in numbers.values():
        most = sent[switch]
        least = sent[switch] - direct[switch]
        before = [first for first, after in nexts.items() if switch in after]
        if any(len(nexts[first]) > 1 for first in before):
            continue
        for first in before:
            events = _events(found.network.counts, first)
            taken = sum(events.get(name, 0) for name in ("claimed", "reclaimed", "added", "duplicate"))
            on = _outcomes(events)[1] - taken + events.get("completed", 0)
            most += on + events.get("resend_summed", 0)
            least += on - events.get("stale", 0) - events.get("overflow", 0)
        fewest, outcomes = _outcomes(_events(found.network.counts, switch))
        if outcomes < least or fewest > most:
            yield (
                f"{switch} counted {outcomes} outcomes of designated gradients, "
                f"{least}{f' to {most}' if most > least else ''} came to it"
            )


def _outcomes(events: Mapping[str, int]) -> tuple[int, int]:
    """Return the smallest and the largest number of labelled packets that these events can stand for."""
    most = sum(events.get(name, 0) for name in ONE_OF_THESE)
    return most - min(events.get("added", 0), events.get("resend_summed", 0)), most


def unevenly_used(phase: AggregationPhase, found: PhaseResult) -> Iterator[str]:
    """Report switches that used fewer or more slots than a uniform hash would.

    The reference is the occupancy problem: as many balls as fragments, thrown at random into as many bins as slots.
    """
    if phase.task.configuration.faults:
        return
    switches = phase.shared.configuration.switches
    for switch in _switches(phase):
        number = phase.shared.topology.switch(switch).number
        slots = found.network.registers.get((switch, SLOT_OWNER), {})
        if None in slots.values():
            continue
        used = len(slots)
        fragments = 0
        for config, rounds in zip(phase.configs, phase.rounds, strict=True):
            labels = [own for own in config.designations if own]
            if any(
                number in (label.switch_number, label.next_switch) and len(own) == 1
                for own in labels
                for label in own
            ):
                fragments += config.fragments_per_round * len(rounds)
            elif any(number in (label.switch_number, label.next_switch) for label in chain(*labels)):
                return  # some of the fragments
        if switches.slot_policy == "dynamic" and fragments:
            # A fragment that came in resends alone, or around the switch, has had no slot.
            without = _events(found.network.counts, switch).get("resend_single", 0) + sum(
                final.get("direct_copies", 0) for final in found.agents.final.values()
            )
            mean, deviation = _slots_used(switches.slots, fragments)
            least, least_deviation = _slots_used(switches.slots, max(0, fragments - without))
            if not least - SIGMAS * least_deviation - 1 <= used <= mean + SIGMAS * deviation + 1:
                yield (
                    f"{switch} used {used} of {switches.slots} slots for {fragments} fragments, "
                    f"a hash uses {mean:.0f}"
                )


def _slots_used(slots: int, fragments: int) -> tuple[float, float]:
    """Return mean and standard deviation of the number of occupied slots when each fragment takes one at random.

    With n slots and f fragments, a slot stays empty with probability (1 - 1/n)^f, a given pair with (1 - 2/n)^f.
    """
    empty = (1 - 1 / slots) ** fragments
    two_empty = (1 - 2 / slots) ** fragments if slots > 1 else 0.0
    variance = max(0.0, slots * empty + slots * (slots - 1) * two_empty - (slots * empty) ** 2)
    return slots * (1 - empty), math.sqrt(variance)


def wrong_byte_hops(phase: AggregationPhase, found: PhaseResult, rows: Sequence[Row]) -> Iterator[str]:
    """Report a bytes-times-hops sum that differs from the bytes that switches and hosts received."""
    if phase.exchange != "server" or phase.shared.fabric_program is not None or phase.task.configuration.faults:
        return
    counts, topology = found.network.counts, phase.shared.topology
    if not all(counts.has(switch.name, "gradient_in") for switch in topology.switches) or not rows:
        return
    if any(final.get("socket_drops") for final in found.agents.final.values()) or any(
        effect.socket_drops for effect in counts.effects.values()
    ):
        return  # their lengths are not known
    came = Tally()
    for switch in topology.switches:
        for counter in ("gradient_in", "acknowledgement_in"):
            came = sum(counts.counters.get(switch.name, {}).get(counter, {}).values(), came)
    kinds = ("gradient_received", "acknowledgement_received")
    if not all(kind in final for final in found.agents.final.values() for kind in kinds):
        return
    received = sum(final[kind]["bytes"] for final in found.agents.final.values() for kind in kinds)
    for row in rows:
        if row["byte_hops"] != came.bytes + received:
            yield (
                f"bytes times hops are {row['byte_hops']}, switches got {came.bytes} B and hosts {received} B in all"
            )


def wrong_times(
    phase: AggregationPhase, rows: Sequence[Row], rounds: Sequence[Row], jobs: Sequence[Row]
) -> Iterator[str]:
    """Report inconsistent round times.

    A median must have half of the rounds on either side, a mean lies between shortest and longest, no worker takes
    longer than the whole round, and that takes no less than the lower bound from link rates.
    """
    slack = 1 - (0 if phase.task.configuration.clock == "virtual" else REAL_TIME_ERROR)
    for row in rows:
        own = [each for each in rounds if each["job"] == row["job"]]
        yield from _not_a_median("round_time_s", row["median_round_time_s"], own)
        for each in own:
            whole_s, least_s = each["synchronous_round_time_s"], row["least_round_time_s"]
            if each["round_time_s"] > whole_s * (1 + 1e-6) + 1e-6:
                yield (
                    f"round {each['round'] + 1}: a worker took {each['round_time_s']:.6g} s of a round of "
                    f"{whole_s:.6g} s"
                )
            if least_s and not phase.task.configuration.faults and whole_s < least_s * slack:
                yield f"round {each['round'] + 1} took {whole_s:.6g} s, links allow {least_s:.6g} s at least"
    for row in jobs:
        own = [each for each in rounds if each["job"] == row["job"]]
        own = own[1:] or own  # in the first round windows grow
        for name in ("round_time_s", "synchronous_round_time_s"):
            yield from _not_a_median(name, row[name], own)
        times_s = [each["round_time_s"] for each in own]
        if not min(times_s) * (1 - 1e-9) <= row["mean_round_time_s"] <= max(times_s) * (1 + 1e-9):
            yield (
                f"the mean round time is {row['mean_round_time_s']:.6g} s, of rounds of {min(times_s):.6g} to "
                f"{max(times_s):.6g} s"
            )


def _not_a_median(name: str, median_s: float, rounds: Sequence[Row]) -> Iterator[str]:
    times_s = sorted(each[name] for each in rounds)
    low, high = times_s[(len(times_s) - 1) // 2], times_s[len(times_s) // 2]
    if not low * (1 - 1e-9) <= median_s <= high * (1 + 1e-9):
        yield (
            f"the median of {name} is {median_s:.6g} s, but half of the rounds took {low:.6g} s or less, half "
            f"{high:.6g} s or more"
        )


def wrong(
    phase: AggregationPhase,
    found: PhaseResult,
    summary: Sequence[Any],
    rounds: Sequence[Any],
    jobs: Sequence[Any] = (),
) -> Iterator[Iterator[str]]:
    """Return an iterator of failure messages for each check.

    Args:
        found: measurements of the phase.
        summary: rows of the phase in the table "summary", as they are shown.
        rounds: rows of the phase in the table "rounds".
        jobs: rows of the phase in the table "jobs".
    """
    yield wrong_slots(phase, found)
    yield wrong_events(phase, found)
    yield wrong_claims(phase, found)
    yield wrong_consumption(phase, found)
    yield wrong_outcomes(phase, found)
    yield unevenly_used(phase, found)
    yield wrong_byte_hops(phase, found, summary)
    yield wrong_times(phase, summary, rounds, jobs)
