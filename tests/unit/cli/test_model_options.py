"""Options that are made of pydantic models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from pydantic import BaseModel, Field, ValidationError
from typer.testing import CliRunner

from gradbed.cli.options import parameters, with_parameters
from gradbed.experiments.configuration.options import complaint, described, model_options, nested
from gradbed.experiments.configuration.sections import LinkSection, Section, option
from gradbed.experiments.systems import SYSTEMS, find_system
from gradbed.experiments.systems.aggregation.system import AggregationSystem
from gradbed.experiments.systems.compression.system import CompressionSystem
from tests.conftest import GradbedHere


class Tea(Section):
    kind: Literal["tea"] = "tea"
    minutes: int = option(3, "To steep.", ge=1)
    cups: int = option(1, "To pour.")


class Coffee(Section):
    kind: Literal["coffee"] = "coffee"
    cups: int = option(1, "To pour.")
    milk: bool = option(False, "White.")


class Breakfast(Section):
    link: LinkSection = LinkSection()
    drink: Annotated[Tea | Coffee, Field(discriminator="kind")] = Tea()
    guests: tuple[str, ...] | None = option(None, "Who comes.", name="with")
    hours: tuple[Literal["early", "late"], ...] = option(("early",), "When.")
    wishes: tuple[str, ...] = Field(default=(), json_schema_extra={"repeated": True})
    place: Path = option(Path("kitchen"), "Where.")
    secret: str = Field(default="", json_schema_extra={"option": False})
    table: dict[str, int] = Field(default_factory=dict)


OPTIONS = model_options(Breakfast, {"drink.minutes": 5})


def read(*arguments: str, defaults: dict[str, Any] | None = None) -> Breakfast:
    """What a command makes of its command line."""
    made: list[Breakfast] = []

    def command(**given: Any) -> int:
        made.append(Breakfast.model_validate(nested(OPTIONS, given, defaults or {})))
        return 0

    app = typer.Typer()
    app.command()(with_parameters(command, parameters(OPTIONS)))
    outcome = CliRunner().invoke(app, list(arguments))
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    assert outcome.exit_code == 0, outcome.output
    return made[0]


def test_every_field_is_one_flag() -> None:
    flags = [each.flag for each in OPTIONS]
    link = [f"--{name.replace('_', '-')}" for name in LinkSection.model_fields]
    assert flags == [
        *link,
        "--drink",
        "--minutes",
        "--cups",
        "--milk",
        "--with",
        "--hours",
        "--wishes",
        "--place",
    ]
    assert {each.flag: each.default for each in OPTIONS}["--minutes"] == 5


def test_two_fields_of_one_flag_are_a_mistake_of_the_model() -> None:
    class Twice(BaseModel):
        tea: Tea = Tea()
        cups: int = 1

    with pytest.raises(ValueError, match=r"cups and tea\.cups are both --cups"):
        model_options(Twice, {})


def test_nothing_given_is_the_models_default() -> None:
    assert read() == Breakfast()


def test_a_union_by_its_kind() -> None:
    drink = read("--drink", "coffee", "--cups", "2", "--milk").drink
    assert drink == Coffee(cups=2, milk=True)
    assert read("--minutes", "7", defaults={"drink.kind": "tea"}).drink == Tea(minutes=7)
    assert read("--drink", "coffee", defaults={"drink.kind": "tea"}).drink == Coffee()


def test_every_flag_has_its_negative() -> None:
    assert read("--drink", "coffee", "--no-milk", defaults={"drink.milk": True}).drink == Coffee(milk=False)
    assert read("--drink", "coffee", defaults={"drink.milk": True}).drink == Coffee(milk=True)
    assert read("--drink", "coffee", "--no-milk", "--milk").drink == Coffee(milk=True)


def test_what_may_be_repeated_is_a_list() -> None:
    assert read("--wishes", "a, b", "--wishes", "c").wishes == ("a, b", "c")


def test_lists_are_words_with_commas() -> None:
    assert read("--with", "ann,bob").guests == ("ann", "bob")
    assert read("--with", "ann,").guests == ("ann",)
    assert read("--with", "").guests == ()
    assert read("--hours", "late,early").hours == ("late", "early")
    assert read("--place", "a,b").place == Path("a,b")


@pytest.mark.parametrize(("said", "rate_mbps"), [("0", None), ("0.0", None), ("2.5", 2.5)])
def test_a_rate_of_0_is_no_limit(said: str, rate_mbps: float | None) -> None:
    assert read("--rate-mbps", said).link.rate_mbps == rate_mbps


def test_what_is_given_goes_before_the_commands_defaults() -> None:
    assert read(defaults={"link.loss": 0.5, "hours": ("late",)}).link.loss == 0.5
    made = read("--loss", "0", "--hours", "early", defaults={"link.loss": 0.5, "hours": ("late",)})
    assert (made.link.loss, made.hours) == (0.0, ("early",))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--minutes", "0", "--drink", "tea"], "--minutes: must be at least 1, got 0"),
        (["--drink", "milk"], "--drink: must be one of 'tea', 'coffee', got 'milk'"),
        (["--milk", "--drink", "tea"], "--milk: does not go with --drink tea"),
        (["--hours", "noon"], "--hours: must be one of 'early', 'late', got 'noon'"),
        (["--loss", "2"], "--loss: must be less than 1, got 2"),
        (["--jitter-us", "60"], "link: link jitter is between 0 and the delay of 50 us, got 60 us"),
    ],
)
def test_a_complaint_names_the_flag(arguments: list[str], line: str) -> None:
    with pytest.raises(ValidationError) as caught:
        read(*arguments)
    said = str(complaint(caught.value, OPTIONS))
    assert said.startswith(line)
    assert "\n" not in said


@pytest.mark.parametrize("command", ["aggregation", "torch"])
def test_help_lists_every_option_once(
    command: str, monkeypatch: pytest.MonkeyPatch, gradbed_here: GradbedHere
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    # Not by TERMINAL_WIDTH, which is read once for all tests of a process.
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 200)
    words = gradbed_here("run", command, "--help-all").out.split()
    runs_scripts = command == "torch"
    flags = {
        each.flag
        for system in ([AggregationSystem, CompressionSystem] if runs_scripts else [AggregationSystem])
        for each in model_options(
            system.configuration, system.options.script_defaults or {} if runs_scripts else system.options.defaults
        )
    }
    if runs_scripts:
        flags -= {"--script", "--workload", "--clock"}
        assert {"--placement", "--compress", "--ratio"} <= flags
    for flag in [*flags, "--seed", "--output", "--scale"]:
        assert words.count(flag) == 1, flag


OWN = [name for name, place in SYSTEMS.items() if place.startswith("gradbed.experiments.systems.")]
"""Tests may have added others."""
SCREEN_LINES = 55


@pytest.mark.parametrize("name", [*OWN, "torch"])
def test_help_fits_two_screens_and_help_all_has_the_rest(
    name: str, monkeypatch: pytest.MonkeyPatch, gradbed_here: GradbedHere
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 100)
    short, whole = (gradbed_here("run", name, option).out for option in ("--help", "--help-all"))
    assert len(short.splitlines()) <= 2 * SCREEN_LINES
    assert FLAG.findall(short) == [each for each in FLAG.findall(whole) if each in FLAG.findall(short)]
    assert {"--topology", "--rate-mbps", "--loss", "--seed"} <= set(FLAG.findall(short))
    assert {"--jitter-us", "--scale"} <= set(FLAG.findall(whole)) - set(FLAG.findall(short))


FLAG = re.compile(r"^│ (--[a-z0-9-]+)", re.MULTILINE)


@pytest.mark.parametrize("name", OWN)
def test_every_option_has_a_sentence_and_names_its_unit(name: str) -> None:
    system = find_system(name)
    for each in [
        *model_options(system.configuration, system.options.defaults),
        *model_options(system.options.shorthands, {}),
    ]:
        words = described(each)
        assert words[:1].isupper() or words[:1].isdigit(), (each.flag, words)
        assert words.endswith("."), (each.flag, words)
        for suffix, unit in UNITS.items():
            if each.flag.endswith(suffix):
                assert unit in re.findall(r"[A-Za-z/^0-9]+", words), (each.flag, words)


UNITS = {"-us": "us", "-ms": "ms", "-ns": "ns", "-mbps": "Mbit/s", "-kbytes": "kB", "-bytes": "bytes"}
