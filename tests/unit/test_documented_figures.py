"""The helper that holds documents to the data of their figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit import documented_figures
from tests.unit.documented_figures import FigureData, figure_data, said

DATA = FigureData(
    "made-up",
    [
        {"workload.workers": 2, "topology.kind": "star:9", "clock": "virtual", "time_s": 1.5},
        {"workload.workers": 4, "topology.kind": "star:9", "clock": "virtual", "time_s": 2.5},
        {"workload.workers": 4, "topology.kind": "star:9", "clock": "real", "time_s": 2.6},
    ],
)


def test_rows_by_the_last_part_of_their_paths() -> None:
    assert DATA.row(workers=4)["time_s"] == 2.5
    assert DATA.row("real", topology__kind="star:9")["time_s"] == 2.6
    assert [row["time_s"] for row in DATA.rows(kind="star:9")] == [1.5, 2.5]
    for wrong in ({"workers": 3}, {"kind": "star:9"}, {"worker": 2}):
        with pytest.raises(AssertionError):
            DATA.row(**wrong)


def test_a_sentence_stands_as_it_is_computed_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.md").write_text("It takes 2.5 s,\nwhich is much.\n")
    monkeypatch.setattr(documented_figures, "ROOT", tmp_path)
    said("page.md", f"It takes {DATA.row(workers=4)['time_s']} s, which is much.")
    with pytest.raises(AssertionError, match=r"as the figure's data do: It takes 1\.5 s"):
        said("page.md", f"It takes {DATA.row(workers=2)['time_s']} s")


def test_a_fault_is_the_same_whatever_else_links_may_have_since() -> None:
    fault = {"fault": "link-change", "link": ["h1", "s1"], "at_ms": 15, "change": {"rate_mbps": 50}}
    now = {**fault, "at_ms": 15.0, "change": {"rate_mbps": 50.0, "bit_error_rate": None}}
    assert documented_figures._shown([fault]) == documented_figures._shown((now,))
    for key, value in {"rate_mbps": 51, "loss": 0.1}.items():
        other = {**fault, "change": {"rate_mbps": 50, key: value}}
        assert documented_figures._shown([fault]) != documented_figures._shown([other])


def test_data_of_another_form_of_the_study_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = "experiments/systems/aggregation/studies/aggregation_6_byte_hops.yaml"
    (tmp_path / study).parent.mkdir(parents=True)
    (tmp_path / study).write_text((documented_figures.ROOT / study).read_text())
    (tmp_path / "docs/data").mkdir(parents=True)
    rows = (documented_figures.ROOT / "docs/data/aggregation_6_byte_hops.csv").read_text().splitlines(keepends=True)
    (tmp_path / "docs/data/aggregation_6_byte_hops.csv").write_text("".join(rows[:-1]))
    monkeypatch.setattr(documented_figures, "ROOT", tmp_path)
    figure_data.cache_clear()
    with pytest.raises(AssertionError, match="make it anew"):
        figure_data("aggregation_6_byte_hops")
    figure_data.cache_clear()
