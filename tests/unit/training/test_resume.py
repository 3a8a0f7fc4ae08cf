"""--resume keeps a trial of a trace only where the trace is as it was."""

from __future__ import annotations

from pathlib import Path

from gradbed.experiments.scale import Scale
from gradbed.experiments.study.definition import TrialSpec
from gradbed.experiments.study.running.digest import digest, identity
from gradbed.experiments.systems.training.configuration import TrainingConfiguration

LAYER = "layer -1 {us} NONE 0 0 NONE 0 0 ALLREDUCE 100000 10\n"


def test_another_trace_is_another_trial(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"

    def of_trace(us: int, **configuration: object) -> str:
        trace.write_text("DATA\n1\n" + LAYER.format(us=us))
        named = TrainingConfiguration.model_validate({"workload": {"trace": str(trace)}, **configuration})
        return digest(identity("training", TrialSpec({}, 1, 1, named), Scale()))

    before = of_trace(5000)
    assert of_trace(6000) != before == of_trace(5000)
    assert of_trace(5000, topology={"kind": "star:4"}) != before


def test_a_trace_that_is_gone_is_still_a_trial(tmp_path: Path) -> None:
    """Which says so when it runs."""
    gone = TrainingConfiguration.model_validate({"workload": {"trace": str(tmp_path / "none.txt")}})
    assert digest(identity("training", TrialSpec({}, 1, 1, gone), Scale()))
