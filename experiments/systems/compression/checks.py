"""Check a run's numbers against bounds of links, properties of compressors, and training in a single process.

Some checks hold only while the network has no faults and no competing traffic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.experiments.phases import PhaseResult
from gradbed.experiments.systems.compression.phase import CompressionPhase, CompressionRoundReport
from gradbed.hosts.compressors.methods import parsed
from gradbed.hosts.learning.dataset import SHAPES, load
from gradbed.hosts.learning.reference import reference
from gradbed.hosts.learning.settings import TrainingSettings
from gradbed.hosts.systems.compression.frames import MOST_FRAME_BYTES

# ---- As long as nothing happens to the network ----


def unexpected(phase: CompressionPhase, found: PhaseResult) -> Iterator[str]:
    """Yield a line for each deviation from what an undisturbed network must give."""
    configuration = phase.configuration
    models = [link.model for link in phase.topology.links]
    if (
        configuration.faults
        or configuration.background.load
        or any(m.loss or m.duplicate or m.bit_error_rate for m in models)
    ):
        return
    for number, report in enumerate(phase.rounds):
        if missing := sorted(set(phase.names) - report.received.keys()):
            yield f"round {number + 1}: nothing of {missing[0]} is in the sum, though nothing has happened"
        # On the real clock the machine may have kept packets waiting.
        if configuration.clock == "virtual" and configuration.ratio.rule == "corrected":
            for name, reported in report.exchanged.items():
                if reported["planned_bytes"] < reported["total_bytes"]:
                    yield f"round {number + 1}, {name}: a part was left out, though nothing has happened"
    yield from _uncounted(phase, found)


def _uncounted(phase: CompressionPhase, found: PhaseResult) -> Iterator[str]:
    """Report a difference between the bytes that workers planned and those that the server's switch counted."""
    configuration, topology = phase.configuration, phase.topology
    if configuration.transport.protocol != "packets" or configuration.program.model != "gradbed":
        return
    switch = topology.attachment(phase.server).name
    reported = [found.agents.final.get((found.agents.answers[0]["job"], name), {}) for name in phase.names]
    if any(each.get("timeout_resends", 0) + each.get("early_resends", 0) for each in reported):
        return  # where a queue was full, or an acknowledgement late
    planned = sum(each["planned_bytes"] for report in phase.rounds for each in report.exchanged.values())
    counted = found.network.counts.cell(switch, "part_out", topology.port(switch, phase.server)).bytes
    if counted != planned:
        yield f"workers sent {planned} B of gradients, switch {switch} counted {counted} B for the server"


# ---- Always ----


ROUNDING = 1e-9
"""Relative tolerance of floating-point numbers."""

LOSS_TOLERANCE = 0.01
"""Relative tolerance of training losses: float32, and gradients in steps of 2^-26, over all rounds."""

SINGLE_LANE = 1
"""Lanes of the reference's fragments.

With one lane no sum is shifted unless it overflows, and then weights are not compared.
"""

BURST_FRAMES = 4
"""Frames of each worker that another frame to the server may find in the queue.

They are the burst of its token bucket, one that was delayed on its way, and acknowledgements of the sum.
"""


def contradictions(
    phase: CompressionPhase, found: PhaseResult, values: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield a line for each number of the run that contradicts other numbers, or what its links carry.

    Args:
        values: metrics of the run, as reported.
        rows: rows of its table "rounds", as reported.
    """
    if not rows:
        return
    for row in rows:
        where = f"round {row['round'] + 1}"
        if row["sending_time_s"] > row["iteration_time_s"] * (1 + ROUNDING):
            yield f"{where}: sending took {row['sending_time_s']:g} s of {row['iteration_time_s']:g} s"
        if not row["least_ratio"] <= row["ratio"] * (1 + ROUNDING) <= 1 + 2 * ROUNDING:
            yield f"{where}: the mean ratio is {row['ratio']:g}, the least {row['least_ratio']:g}"
    times_s = sorted(row["iteration_time_s"] for row in rows)
    if values["longest_iteration_s"] != times_s[-1]:
        yield f"the longest iteration is told to take {values['longest_iteration_s']:g} s, and took {times_s[-1]:g} s"
    half = len(times_s) // 2
    median_s = (times_s[half] + times_s[~half]) / 2
    if abs(values["iteration_time_s"] - median_s) > ROUNDING * median_s:
        yield f"the median iteration is told to take {values['iteration_time_s']:g} s, and took {median_s:g} s"
    yield from _faster_than_links(phase, found, values, rows)


def _faster_than_links(
    phase: CompressionPhase, found: PhaseResult, values: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Report rounds that are shorter than the server's link allows, and sent bytes that this link did not carry."""
    configuration, topology = phase.configuration, phase.topology
    if configuration.faults or configuration.transport.protocol != "packets" or phase.left:
        return
    link = topology.link(phase.server, topology.attachment(phase.server).name)
    workers = len(phase.workers)
    for row in rows:
        # The first frames may have come before, and all of them may be in flight.
        sent_bytes = row["wire_bytes"] * workers - MOST_FRAME_BYTES
        least_s = phase.task.scale.nominal_time(8 * sent_bytes / link.model.rate_bps) if link.model.rate_bps else 0.0
        if row["iteration_time_s"] < least_s * (1 - ROUNDING):
            yield (
                f"round {row['round'] + 1} took {row['iteration_time_s']:g} s, less than gradients take on the "
                f"server's link, {least_s:g} s"
            )
    if not _lossless(found):
        return
    if values["server_bytes"] * (1 + ROUNDING) < values["wire_bytes"] * workers:
        yield (
            f"the server's link carried {values['server_bytes']:g} B a round, of {values['wire_bytes']:g} B that "
            f"each of {workers} workers sent"
        )
    if configuration.transport.pacing == "even" and configuration.clock == "virtual" and not phase.stopped:
        most = BURST_FRAMES * workers + 1
        if not configuration.background.load and values["longest_queue"] > most:
            yield (
                f"{values['longest_queue']} packets waited for the server's link, where {workers} workers that share "
                f"it evenly can keep {most} waiting"
            )


def wrong_contents(phase: CompressionPhase) -> Iterator[str]:
    """Yield a line for each gradient of which the wrong values, or the wrong number of them, were sent.

    Only gradients that were sent whole are checked: then the largest values leave only smaller ones behind.
    """
    compression = phase.configuration.compression
    name, parameter = parsed(compression.compress)
    for number, report in enumerate(phase.rounds):
        for worker, told in report.exchanged.items():
            if told["planned_bytes"] < told["total_bytes"]:
                continue
            wrong = _wrong_content(name, parameter, told, warm=number >= compression.warm_up_rounds)
            if wrong:
                yield f"round {number + 1}, {worker}: {compression.compress}: {wrong}"


def _wrong_content(name: str, parameter: float, told: Mapping[str, Any], *, warm: bool) -> str:
    """Return what is wrong with one gradient's content; empty if nothing is.

    Args:
        warm: whether the warm-up rounds are over.
    """
    sent, length, least, held = (told[key] for key in ("sent_values", "values", "least_sent", "most_held"))
    fits = told["most_taken"] < 1 << 31
    if name == "none" and fits and held:
        return f"values of up to {held} are held back"
    if name in ("topk", "randomk") and warm and sent != min(length, max(1, math.ceil(parameter * length))):
        return f"{sent} of {length} values were sent"
    if name == "topk" and fits and least is not None and held > least:
        return f"a value of {least} was sent, and one of {held} is held back"
    if name == "threshold" and least is not None and fits and held >= max(least, 1) and sent:
        return f"a value of {least} was sent, and one of {held} is held back"
    most = (1 << (int(parameter) - 1)) - 1 if name == "quantise" else 0
    if name == "quantise" and fits and held > -(-told["most_taken"] // most):
        return f"an error of {held} was made in values of up to {told['most_taken']}"
    return ""


def wrong_training(phase: CompressionPhase) -> Iterator[str]:
    """Yield a line where training differs from a single process.

    If workers sent all of their gradients, their weights must match bit for bit, and their losses up to a tolerance.
    The losses are those of a training loop of its own.
    """
    compression = phase.configuration.compression
    settings = None if phase.config is None else phase.config.workload
    if not isinstance(settings, TrainingSettings) or compression.compress != "none" or compression.momentum:
        return
    if phase.left or phase.stopped or not _sent_whole(phase.rounds):
        return
    workers = len(phase.workers)
    losses = _losses(settings, workers)
    for number, (report, right, expected) in enumerate(
        zip(phase.rounds, losses, reference(settings, workers, lanes=SINGLE_LANE), strict=False)
    ):
        for name, told in report.round.items():
            worker = int(name.removeprefix("worker "))
            if abs(told["loss"] - right[worker]) > LOSS_TOLERANCE * (1 + right[worker]):
                yield (
                    f"round {number + 1}, {name}: a loss of {told['loss']:g}, a single process has {right[worker]:g}"
                )
            if not expected.overflows and told["weights_sha256"] != expected.weights_sha256:
                yield f"round {number + 1}, {name}: its weights are not those of a single process"


def _sent_whole(rounds: Sequence[CompressionRoundReport]) -> bool:
    return all(
        told["planned_bytes"] == told["total_bytes"] and not told["most_held"]
        for report in rounds
        for told in report.exchanged.values()
    )


def _losses(settings: TrainingSettings, workers: int) -> Iterator[list[float]]:
    """Yield the losses of all workers' minibatches before each round."""
    data, shape = load(settings.dataset), SHAPES[settings.dataset]
    sizes = [shape.features, *([settings.hidden_units] if settings.hidden_units else []), shape.classes]
    drawn = np.random.default_rng(settings.seed)
    layers: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = [
        (drawn.normal(0.0, math.sqrt(2 / inputs), (inputs, outputs)), np.zeros(outputs))
        for inputs, outputs in pairwise(sizes)
    ]
    shards = [data.shard(worker, workers) for worker in range(workers)]
    for number in range(settings.rounds):
        losses, steps = [], [[np.zeros_like(part) for part in layer] for layer in layers]
        for worker, shard in enumerate(shards):
            chosen = np.random.default_rng([settings.seed, worker, number]).choice(
                len(shard), min(settings.batch_samples, len(shard)), replace=False
            )
            loss = _add_gradient(layers, shard.features[chosen].astype(float), shard.labels[chosen], steps)
            losses.append(loss)
        for layer, step in zip(layers, steps, strict=True):
            for part, change in zip(layer, step, strict=True):
                part -= settings.learning_rate * change / workers
        yield losses


def _add_gradient(
    layers: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
    features: NDArray[np.float64],
    labels: NDArray[np.integer],
    steps: Sequence[Sequence[NDArray[np.float64]]],
) -> float:
    """Add the gradient of the mean loss of some samples to `steps`, and return the loss.

    Hidden layers have ReLU, the last one softmax with cross entropy.
    """
    inputs = [features]
    for weights, biases in layers[:-1]:
        inputs.append(np.maximum(0.0, inputs[-1] @ weights + biases))
    logits = inputs[-1] @ layers[-1][0] + layers[-1][1]
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    loss = float(-np.log(shares[np.arange(len(labels)), labels]).mean())
    error = (shares - np.eye(shares.shape[1])[labels]) / len(labels)
    for (weights, _), (of_weights, of_biases), came in zip(
        reversed(layers), reversed(steps), reversed(inputs), strict=True
    ):
        of_weights += came.T @ error
        of_biases += error.sum(axis=0)
        error = (error @ weights.T) * (came > 0)
    return loss


def _lossless(found: PhaseResult) -> bool:
    return not any(each.lost_packets or each.duplicates.packets for each in found.network.counts.effects.values())
