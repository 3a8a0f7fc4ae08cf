"""One number of slots wherever nobody says how many."""

import re
from pathlib import Path

from gradbed.controller.systems.aggregation.job_plan import DEFAULT_SLOTS
from gradbed.controller.systems.aggregation.service import AggregationSettings, NewJob
from gradbed.experiments.systems.aggregation.configuration import AggregationConfiguration
from gradbed.switch.compiler import compile_p4

REPOSITORY = Path(__file__).parents[4]


def test_the_program_has_as_many_slots_as_controller_and_experiments_take_it_to_have() -> None:
    compiled = compile_p4(REPOSITORY / "p4src" / "aggregation.p4", defines={"LANES": "32"})
    arrays = compiled.json["register_arrays"]
    sizes = {each["name"].split(".")[-1]: each["size"] for each in arrays}
    assert sizes["slot_owner"] == DEFAULT_SLOTS
    assert AggregationSettings().slots == AggregationConfiguration().switches.slots == DEFAULT_SLOTS


def test_examples_and_documents_say_the_same() -> None:
    example = NewJob.model_json_schema()["example"]
    assert example["slots"] == DEFAULT_SLOTS
    for name in ("controller.md", "experiments.md"):
        text = (REPOSITORY / "docs" / name).read_text()
        assert set(re.findall(r'slots"?: (\d+)', text)) == {str(DEFAULT_SLOTS)}, name
