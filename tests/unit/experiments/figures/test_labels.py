"""Labels that are longer than a figure has room for."""

from __future__ import annotations

from pathlib import Path

from experiments.plotting.style import figure, save


def test_long_labels_and_titles_are_broken_and_long_words_turned(tmp_path: Path) -> None:
    with figure() as (made, [axes]):
        axes.set_xticks([1, 2, 3], ["optical-electrical:2", "leaf-spine:4,2,2", "dragonfly:4,2,1"])
        axes.set_ylabel("what links carried and hosts received on average of the rates of all links")
        save(
            made, tmp_path / "long", "A title of a study that has far more words than there is room for in one\nmean"
        )
        width, height = made.get_size_inches() * made.dpi
        box = axes.yaxis.label.get_window_extent()
        assert box.y0 >= 0 and box.y1 <= height
        title = made._suptitle
        assert title is not None
        assert title.get_text().splitlines()[-1] == "mean" and title.get_window_extent().x1 <= width
        boxes = [text.get_window_extent() for text in axes.get_xticklabels()]
        assert {text.get_rotation() for text in axes.get_xticklabels()} == {15}
        assert all(box.x0 >= 0 and box.x1 <= width for box in boxes)


def test_short_ones_stay(tmp_path: Path) -> None:
    with figure() as (made, [axes]):
        axes.set_xticks([1, 2], ["ring", "server"])
        axes.set_ylabel("time (ms)")
        save(made, tmp_path / "short", "Round time")
        assert axes.get_ylabel() == "time (ms)"
        assert {text.get_rotation() for text in axes.get_xticklabels()} == {0}
