"""Labels that are longer than a figure has room for."""

from __future__ import annotations

from pathlib import Path

from gradbed.experiments.plotting.style import figure, save, set_scaled_axis
from tests.unit.experiments.figures.looked_at import words_over_words


def test_long_labels_titles_and_words_are_broken(tmp_path: Path) -> None:
    with figure() as (made, [axes]):
        axes.set_xticks(range(4), ["optical-electrical:2", "leaf-spine:4,2,2", "dragonfly:4,2,1", "bcube:4,1"])
        axes.set_xlim(-0.5, 3.5)
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
        assert {text.get_rotation() for text in axes.get_xticklabels()} == {0}
        assert axes.get_xticklabels()[0].get_text() == "optical-\nelectrical:2"
        assert all(box.x0 >= 0 and box.x1 <= width for box in boxes)


def test_short_ones_stay(tmp_path: Path) -> None:
    with figure() as (made, [axes]):
        axes.set_xticks([1, 2], ["ring", "server"])
        axes.set_ylabel("time (ms)")
        save(made, tmp_path / "short", "Round time")
        assert axes.get_ylabel() == "time (ms)"
        assert {text.get_rotation() for text in axes.get_xticklabels()} == {0}


def test_powers_of_ten_are_as_short_as_they_look(tmp_path: Path) -> None:
    with figure(width_in=3) as (made, [axes]):
        axes.loglog([1e-4, 1e-1], [1, 2])
        save(made, tmp_path / "powers")
        assert {text.get_rotation() for text in axes.get_xticklabels()} == {0}


def test_words_without_a_place_to_break_are_turned(tmp_path: Path) -> None:
    with figure(width_in=2.5) as (made, [axes]):
        axes.set_xticks(range(3), ["permutationpermutation", "incast", "synchronous"])
        save(made, tmp_path / "words")
        assert {text.get_rotation() for text in axes.get_xticklabels()} == {15}


def test_of_numbers_that_would_touch_some_are_left_out(tmp_path: Path) -> None:
    with figure(width_in=3) as (made, [axes]):
        axes.set_xticks(range(0, 100_001, 10_000))
        made.draw_without_rendering()
        assert words_over_words(made), "there is no case"
        save(made, tmp_path / "numbers")
        assert {text.get_rotation() for text in axes.get_xticklabels()} == {0}
        words = [text.get_text() for text in axes.get_xticklabels()]
        assert words[0] == "0" and "" in words and not words_over_words(made)


def test_an_axis_counts_in_the_prefix_of_its_largest_value(tmp_path: Path) -> None:
    with figure() as (made, [axes]):
        axes.plot([0, 1], [0.00025, 0.00275])
        assert set_scaled_axis(axes.yaxis, [0.00025, 0.00275], "s") == "ms"
        made.draw_without_rendering()
        assert {"0.5", "2.5"} <= {text.get_text() for text in axes.get_yticklabels()}
        assert set_scaled_axis(axes.xaxis, [100, 18_000], "us") == "ms"
        assert set_scaled_axis(axes.xaxis, [2e9, 5e10], "bit/s") == "Gbit/s"
        assert set_scaled_axis(axes.xaxis, [3.0], "") == ""


def test_a_label_below_a_narrow_panel_is_broken(tmp_path: Path) -> None:
    with figure(width_in=2.5) as (made, [axes]):
        axes.set_xlabel("round time (ms); dashed: the least that the links allow")
        save(made, tmp_path / "below")
        assert axes.xaxis.label.get_window_extent().width <= axes.get_window_extent().width


def test_a_label_fits_beside_what_the_legend_leaves_of_the_panel(tmp_path: Path) -> None:
    with figure(columns=2) as (made, axes):
        for panel in axes:
            panel.plot([0, 1], [0, 1], label="a")
            panel.set_ylabel("resends of a worker for each fragment")
        made.legend([*axes[0].lines] * 5, ["a line of the legend"] * 5, loc="outside lower center")
        save(
            made,
            tmp_path / "beside",
            "The title\nmean and 95 % interval of 5 repetitions where anything is random",
        )
        for panel in axes:
            label, frame = panel.yaxis.label.get_window_extent(), panel.get_window_extent()
            assert label.height <= frame.height
