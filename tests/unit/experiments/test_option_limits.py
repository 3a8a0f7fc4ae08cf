"""Options that reach agents under their names are refused when they are read, if the agents would refuse them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import BaseModel

from gradbed.experiments.systems.aggregation import configuration as aggregation
from gradbed.experiments.systems.compression import configuration as compression
from gradbed.experiments.systems.ndn import configuration as ndn
from gradbed.experiments.systems.shuffle import configuration as shuffle
from gradbed.hosts.systems.aggregation.config import AggregationJob as AggregationJob
from gradbed.hosts.systems.compression.config import CompressionJob as CompressionJob
from gradbed.hosts.systems.ndn.config import NdnJob
from gradbed.hosts.systems.shuffle.config import ShuffleConfig

DESCRIBED: tuple[tuple[type[BaseModel], type[BaseModel]], ...] = (
    (aggregation.AggregationSyntheticWorkload, AggregationJob),
    (aggregation.AggregationTrainingWorkload, AggregationJob),
    (compression.CompressionSection, CompressionJob),
    (compression.RatioSection, CompressionJob),
    (compression.CompressionTransportSection, CompressionJob),
    (ndn.NdnSyntheticWorkload, NdnJob),
    (shuffle.ShuffleSection, ShuffleConfig),
)


def limits(model: type[BaseModel], name: str) -> tuple[float, float]:
    """Least and greatest value; a bound that is excluded counts as one that is not."""
    found: dict[str, Any] = {}
    for rule in model.model_fields[name].metadata:
        found.update({each: getattr(rule, each) for each in ("ge", "gt", "le", "lt") if hasattr(rule, each)})
    return found.get("ge", found.get("gt", -math.inf)), found.get("le", found.get("lt", math.inf))


@pytest.mark.parametrize(
    ("section", "config"), DESCRIBED, ids=lambda model: f"{model.__module__.split('.')[-2]} {model.__name__}"
)
def test_options_are_limited_as_their_descriptions_are(section: type[BaseModel], config: type[BaseModel]) -> None:
    same = section.model_fields.keys() & config.model_fields.keys()
    assert same
    for name in same:
        least, most = limits(section, name)
        agent_least, agent_most = limits(config, name)
        # Emulated times are nominal ones or longer.
        assert least >= agent_least and (name.endswith("_us") or most <= agent_most), name
