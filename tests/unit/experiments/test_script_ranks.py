"""PyTorch scripts as workers: what a run of one takes, it gives back."""

from __future__ import annotations

import gc
import os
from pathlib import Path

from gradbed.experiments.torch_scripts import ScriptRanks, ScriptSection


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def test_descriptors_of_the_output_last_as_long_as_the_ranks(tmp_path: Path) -> None:
    gc.collect()
    before = descriptors()
    ranks = ScriptRanks(ScriptSection(path=tmp_path / "script.py"), tmp_path)
    assert [os.fstat(copy) for copy in ranks.keep_open] == [os.fstat(1), os.fstat(2)]
    del ranks
    gc.collect()
    assert descriptors() == before
