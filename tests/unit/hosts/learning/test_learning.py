"""Data, model, fragments, and training that is the same everywhere."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from gradbed.hosts.learning.dataset import Samples, load
from gradbed.hosts.learning.fragments import as_sent, cut, fragment_count, join, restored, shifted
from gradbed.hosts.learning.model import NeuralNetwork
from gradbed.hosts.learning.quantise import HEADROOM_BITS, VALUE_LIMIT
from gradbed.hosts.learning.reference import reference, synthetic_reference
from gradbed.hosts.learning.settings import SyntheticSettings, TrainingSettings
from gradbed.hosts.learning.trainer import Replica, Shard
from gradbed.hosts.learning.workload import TrainingWorkload, gradient_values, workload

ROOT = Path(__file__).resolve().parents[4]


def test_digits_are_those_of_scikit_learn() -> None:
    pixels, labels = load_digits(return_X_y=True)
    digits = load("digits")
    ours = [
        [*sample, label]
        for part in (digits.train, digits.test)
        for sample, label in zip(part.features.tolist(), part.labels.tolist(), strict=True)
    ]
    assert sorted(ours) == sorted(np.column_stack([pixels / 16, labels]).tolist())


def test_digits_are_split_into_train_and_test() -> None:
    digits = load("digits")
    assert (len(digits.train), len(digits.test)) == (1438, 359)
    for samples in (digits.train, digits.test):
        assert samples.features.dtype == np.float32
        assert samples.features.min() == 0.0
        assert samples.features.max() == 1.0
        assert set(samples.labels.tolist()) == set(range(10))


@pytest.mark.parametrize("workers", [1, 7, 8, 64])
def test_shards_partition_the_training_samples(workers: int) -> None:
    digits = load("digits")
    shards = [digits.shard(worker, workers) for worker in range(workers)]
    rows = np.concatenate([np.column_stack([shard.features, shard.labels]) for shard in shards])
    whole = np.column_stack([digits.train.features, digits.train.labels])
    assert sorted(map(bytes, rows)) == sorted(map(bytes, whole))
    sizes = [len(shard) for shard in shards]
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 200), st.sampled_from([16, 32, 48]))
def test_fragments_join_to_what_was_cut(values: int, lanes: int) -> None:
    vector = np.random.default_rng(values).integers(-(1 << 31), 1 << 31, values).astype(np.int32)
    fragments = cut(vector, lanes)
    assert fragments.shape == (fragment_count(values, lanes), lanes)
    assert not fragments.reshape(-1)[values:].any()
    np.testing.assert_array_equal(join(fragments, values), vector)


@pytest.mark.parametrize(("hidden_units", "parameters"), [(0, 650), (64, 4810)])
def test_gradient_is_the_slope_of_the_loss(hidden_units: int, parameters: int) -> None:
    network = NeuralNetwork(64, hidden_units, 10)
    assert network.parameters == parameters
    digits = load("digits").train
    # In float64, where finite differences are worth something.
    samples = Samples(digits.features[:20].astype(np.float64), digits.labels[:20])  # type: ignore[arg-type]
    weights = network.initial_weights(3).astype(np.float64)
    generator = np.random.default_rng(4)
    weights += generator.normal(0, 0.1, parameters)
    _, gradient = network.loss_and_gradient(weights, samples)  # type: ignore[arg-type]
    step = 1e-6
    for index in generator.choice(parameters, 60, replace=False):
        above, below = weights.copy(), weights.copy()
        above[index] += step
        below[index] -= step
        slope = (
            network.loss_and_gradient(above, samples)[0]  # type: ignore[arg-type]
            - network.loss_and_gradient(below, samples)[0]  # type: ignore[arg-type]
        ) / (2 * step)
        assert slope == pytest.approx(gradient[index], rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("hidden_units", [0, 64])
def test_reference_learns_the_digits(hidden_units: int) -> None:
    rounds = list(reference(TrainingSettings(hidden_units=hidden_units), workers=8, lanes=256))
    assert len(rounds) == 100
    assert rounds[-1].accuracy >= (0.94 if hidden_units else 0.92)
    assert np.mean(rounds[-1].losses) < 0.5 < 2 < np.mean(rounds[0].losses)
    assert sum(r.clipped for r in rounds) == sum(r.overflows for r in rounds) == 0
    assert len({r.weights_sha256 for r in rounds}) == 100


@pytest.mark.parametrize("headroom_bits", [HEADROOM_BITS, -1])
def test_workers_that_exchange_fragments_equal_the_reference(headroom_bits: int) -> None:
    """Workers apart, sums in any order and grouping, over fragments: the same weights after every round."""
    settings = TrainingSettings(hidden_units=8, rounds=8, seed=5, headroom_bits=headroom_bits)
    workers, lanes = 5, 48
    workloads = [TrainingWorkload(settings, worker, workers) for worker in range(workers)]
    shuffle = random.Random(1)
    overflows = 0
    for expected in reference(settings, workers, lanes):
        gradients = [own.gradient(expected.round) for own in workloads]
        pieces = [cut(gradient.astype(np.int64), lanes) for gradient in gradients]
        while len(pieces) > 1:
            shuffle.shuffle(pieces)
            pieces.append(np.add(pieces.pop(), pieces.pop()))
        carried, shifts = shifted(pieces[0])
        for own in workloads:
            own.apply(join(restored(carried, shifts), len(gradients[0])))
        reports = [own.report() for own in workloads]
        assert [report["weights_sha256"] for report in reports] == [expected.weights_sha256] * workers
        assert tuple(report["loss"] for report in reports) == expected.losses
        assert sum(report["clipped"] for report in reports) == expected.clipped
        assert reports[0]["accuracy"] == expected.accuracy
        assert (expected.overflows > 0) == bool(shifts.any())
        overflows += expected.overflows
    assert (overflows > 0) == (headroom_bits < 0)


def test_training_with_overflowing_sums_learns_all_the_same() -> None:
    rounds = list(reference(TrainingSettings(headroom_bits=-2), workers=8, lanes=256))
    assert sum(1 for r in rounds if r.overflows) > 30
    assert rounds[-1].accuracy >= 0.94


def test_synthetic_workers_report_the_digests_of_the_reference() -> None:
    settings = SyntheticSettings(values=1000, rounds=3, magnitude=VALUE_LIMIT, seed=9)
    workloads = [workload(settings, worker, 4) for worker in range(4)]
    for round_number, digest in enumerate(synthetic_reference(settings, 4, 64)):
        gradients = [own.gradient(round_number) for own in workloads]
        assert all(gradient.dtype == np.int32 for gradient in gradients)
        assert 0.99 * VALUE_LIMIT < np.abs(gradients[0].astype(np.int64)).max() <= VALUE_LIMIT
        total = as_sent(np.sum(gradients, axis=0, dtype=np.int64), 64)
        for own in workloads:
            own.apply(total)
            assert own.report() == {"sums_sha256": digest}
    assert len(set(synthetic_reference(settings, 4, 64))) == 3
    assert gradient_values(settings) == 1000


def test_clipping_is_counted_and_training_survives() -> None:
    """A first step far too long makes gradients that do not fit; the scale follows within a few rounds."""
    settings = TrainingSettings(learning_rate=1e6, rounds=6)
    replica = Replica(settings, 2)
    replica.exponents = [60] * 4  # far too fine
    shards = [Shard(settings, load("digits"), worker, 2) for worker in range(2)]
    clipped = []
    for round_number in range(6):
        contributions = [replica.contribution(shard.minibatch(round_number)) for shard in shards]
        clipped.append(sum(c.clipped for c in contributions))
        replica.apply(np.array([c.values for c in contributions]).sum(axis=0, dtype=np.int64))
        replica.weights = replica.network.initial_weights(1)
    assert clipped[0] > 0
    assert clipped[-1] == 0


def test_minibatches_are_of_the_shard_without_repeats() -> None:
    shard = Shard(TrainingSettings(batch_samples=1000), load("digits"), 3, 8)
    batch = shard.minibatch(0)
    whole = load("digits").shard(3, 8)
    assert sorted(map(bytes, batch.features)) == sorted(map(bytes, whole.features))
    small = Shard(TrainingSettings(batch_samples=5), load("digits"), 3, 8)
    assert len(small.minibatch(0)) == 5
    assert small.minibatch(0).features.tobytes() == small.minibatch(0).features.tobytes()
    assert small.minibatch(0).features.tobytes() != small.minibatch(1).features.tobytes()


@pytest.mark.parametrize("numpy_first", [True, False])
def test_blas_has_one_thread_whoever_loads_it(numpy_first: bool) -> None:
    script = ("import numpy;" if numpy_first else "") + (
        "import gradbed.hosts.learning.model, threadpoolctl;"
        "pools = threadpoolctl.threadpool_info();"
        "assert pools;"
        "assert all(p['num_threads'] == 1 for p in pools), pools"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, env=environment)
