"""The config of a job: checked on the way in, one line per mistake."""

from __future__ import annotations

from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.formats.addresses import ip_integer, mac_bytes
from gradbed.hosts.agents.config import parse_config
from gradbed.hosts.learning.settings import SyntheticSettings
from gradbed.hosts.systems.aggregation.config import DIRECT, AggregationJob, AggregationWorker, Designation


def address(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "name": f"h{number}",
        "ip": f"10.0.0.{number}",
        "mac": f"02:00:00:00:00:{number:02x}",
        "gateway_mac": "02:00:00:00:01:00",
        **fields,
    }


def label(switch_number: int, fan_in: int, *second: int) -> dict[str, int]:
    names = ("switch_number", "fan_in", "next_switch", "next_fan_in")
    return dict(zip(names, (switch_number, fan_in, *second), strict=False))


def config(worker_count: int = 8, **fields: Any) -> dict[str, Any]:
    return {
        "job": 1,
        "lanes": 256,
        "designations": [[label(17, worker_count), label(18, 1, 19, worker_count)]] * worker_count,
        "workers": [address(index + 2, index=index) for index in range(worker_count)],
        "server": address(1),
        **fields,
    }


def test_json_there_and_back() -> None:
    job = parse_config(
        AggregationJob,
        config(
            multicast=[{"ip": "239.66.0.1", "mac": "01:00:5e:42:00:01"}],
            workload={"kind": "training", "hidden_units": 0, "rounds": 3},
        ),
    )
    assert parse_config(AggregationJob, job.model_dump_json()) == job
    assert parse_config(AggregationJob, job.model_dump()) == job
    assert job.values == 650
    assert job.fragments_per_round == 3
    assert job.full_bitmap == 0xFF


def test_a_synthetic_job() -> None:
    workload = {"kind": "synthetic", "values": 1000, "rounds": 2}
    job = parse_config(AggregationJob, config(workload=workload, span_fragments=16, congestion_control="ecn"))
    assert parse_config(AggregationJob, job.model_dump_json()) == job
    assert isinstance(job.workload, SyntheticSettings)
    assert (job.values, job.fragments_per_round, job.workload.rounds) == (1000, 4, 2)


def test_packet_numbers() -> None:
    job = parse_config(AggregationJob, config(first_packet_number=(1 << 32) - 20))
    assert job.fragments_per_round == 19
    assert job.first_number(0) == (1 << 32) - 20
    assert job.first_number(1) == (1 << 32) - 1
    assert job.first_number(2) == 18


def test_an_agent_gets_the_value_that_it_is_told_of() -> None:
    """Many agents on the virtual clock share one job; a value of another type is checked like JSON."""
    job = parse_config(AggregationJob, config())
    assert parse_config(AggregationJob, job) is job
    told = AggregationWorker(job=job, index=1)
    assert parse_config(AggregationWorker, told).job is job
    with pytest.raises(UserError, match="config, job: must be a whole number"):
        parse_config(AggregationJob, told)


def test_designations_of_a_worker() -> None:
    own = [[label(17, 2)], [label(17, 2)], [], *([[label(18, 1, 19, 3)]] * 5)]
    job = parse_config(AggregationJob, config(designations=own))
    assert job.designations_of(1) == (Designation(switch_number=17, fan_in=2),)
    assert job.designations_of(2) == (DIRECT,)
    assert job.designations_of(7) == (Designation(switch_number=18, fan_in=1, next_switch=19, next_fan_in=3),)
    assert parse_config(AggregationJob, config(designations=[])).designations_of(3) == (DIRECT,)


def test_sixty_four_workers_are_the_limit() -> None:
    assert len(parse_config(AggregationJob, config(64)).workers) == 64
    with pytest.raises(UserError, match="at most 64 workers"):
        parse_config(AggregationJob, config(65, designations=[]))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"job": 0}, "job: "),
        ({"job": 65536}, "job: "),
        ({"lanes": 100}, "multiple of 32"),
        ({"lanes": 384}, "must be at most 352"),
        ({"designations": [[label(17, 8)]]}, "1 of 8 workers"),
        ({"designations": [[label(17, 9)]] * 8}, "a switch waits for 9 workers, but there are 8"),
        ({"designations": [[label(17, 1, 18, 9)]] * 8}, "a switch waits for 9 workers, but there are 8"),
        ({"designations": [[label(17, 8)], *[[label(17, 8)] * 2] * 7]}, "equally many"),
        ({"designations": [[label(17, 0)]] * 8}, "switch 17 cannot wait for 0 workers"),
        ({"designations": [[label(0, 3)]] * 8}, "switch 0 cannot wait for 3 workers"),
        ({"designations": [[label(0, 0, 17, 3)]] * 8}, "has no second one"),
        ({"designations": [[label(0x4742, 8)]] * 8}, "the UDP port of gradients"),
        ({"designations": [[label(65536, 8)]] * 8}, "designations.0.0.switch_number: "),
        ({"fan_in": 8, "designated_switches": [17]}, "fan_in: "),
        ({"workers": []}, "at least one worker"),
        ({"workers": [address(2, index=1)]}, "order of their indices"),
        ({"span_fragments": 0}, "span_fragments: "),
        ({"congestion_control": "cubic"}, "congestion_control: "),
        ({"multicast": [{"ip": "239.66.0.1"}]}, "multicast.0.mac: is missing"),
        ({"server": address(1, mac="02:00")}, "not a MAC address"),
        ({"server": address(1, ip="10.0.0")}, "server.ip: "),
        ({"server": address(2)}, "the server and a worker have the same IP address"),
        ({"workers": [address(2, index=0), address(2, index=1)]}, "two workers of the job have the same IP address"),
        ({"workload": {"kind": "training", "dataset": "imagenet"}}, "workload.training.dataset: "),
        ({"workload": {"kind": "training", "learning_rate": -1}}, "workload.training.learning_rate: "),
        ({"workload": {"kind": "synthetic", "values": 0, "rounds": 1}}, "workload.synthetic.values: "),
        ({"workload": {"kind": "mining"}}, "'mining'"),
        ({"colour": "red"}, "colour: "),
    ],
)
def test_mistakes_are_named_in_one_line(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_config(AggregationJob, config(**fields))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_text_that_is_no_json() -> None:
    with pytest.raises(UserError, match="config, as a whole"):
        parse_config(AggregationJob, "{")


def test_addresses_as_numbers() -> None:
    assert mac_bytes("02:00:00:00:00:Fe") == b"\x02\0\0\0\0\xfe"
    assert ip_integer("10.0.1.2") == 0x0A000102
