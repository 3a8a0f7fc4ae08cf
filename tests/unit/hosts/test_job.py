"""The job description: checked on the way in, one line per mistake."""

from __future__ import annotations

from typing import Any

import pytest

from hosts.job import JobDescription, ip_integer, mac_bytes
from switch.errors import UserError


def address(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "name": f"h{number}",
        "ip": f"10.0.0.{number}",
        "mac": f"02:00:00:00:00:{number:02x}",
        "gateway_mac": "02:00:00:00:01:00",
        **fields,
    }


def description(worker_count: int = 8, **fields: Any) -> dict[str, Any]:
    return {
        "job": 1,
        "lanes": 256,
        "fan_in": worker_count,
        "designated_switches": [17, 18, 19],
        "workers": [address(index + 2, index=index) for index in range(worker_count)],
        "server": address(1),
        **fields,
    }


def test_json_there_and_back() -> None:
    job = JobDescription.parse(
        description(
            acknowledgement="multicast",
            multicast_ip="239.66.0.1",
            multicast_mac="01:00:5e:42:00:01",
            training={"hidden_units": 0, "rounds": 3},
        )
    )
    assert JobDescription.parse(job.model_dump_json()) == job
    assert JobDescription.parse(job.model_dump()) == job
    assert job.parameters == 650
    assert job.fragments_per_round == 3
    assert job.full_bitmap == 0xFF


def test_packet_numbers_and_their_switches() -> None:
    job = JobDescription.parse(description(first_packet_number=(1 << 32) - 20))
    assert job.fragments_per_round == 19
    assert job.first_number(0) == (1 << 32) - 20
    assert job.packet_number(1, 0) == (1 << 32) - 1
    assert job.packet_number(1, 3) == 2
    assert [job.designated_switch(number) for number in range(5)] == [17, 18, 19, 17, 18]
    assert JobDescription.parse(description(designated_switches=[])).designated_switch(7) == 0


def test_sixty_four_workers_are_the_limit() -> None:
    assert len(JobDescription.parse(description(64)).workers) == 64
    with pytest.raises(UserError, match="at most 64 workers"):
        JobDescription.parse(description(65, fan_in=64))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"job": 0}, "job: "),
        ({"job": 65536}, "job: "),
        ({"lanes": 100}, "multiple of 32"),
        ({"lanes": 384}, "less than or equal to 352"),
        ({"designated_switches": [0]}, "designated_switches.0: "),
        ({"workers": []}, "at least one worker"),
        ({"workers": [address(2, index=1)]}, "order of their indices"),
        ({"fan_in": 9}, "there are 8 workers"),
        ({"acknowledgement": "multicast"}, "needs multicast_ip"),
        ({"acknowledgement": "broadcast"}, "acknowledgement: "),
        ({"server": address(1, mac="02:00")}, "not a MAC address"),
        ({"server": address(1, ip="10.0.0")}, "server.ip: "),
        ({"server": address(2)}, "same IP address"),
        ({"training": {"dataset": "imagenet"}}, "training.dataset: "),
        ({"training": {"learning_rate": -1}}, "training.learning_rate: "),
        ({"colour": "red"}, "colour: "),
    ],
)
def test_mistakes_are_named_in_one_line(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as caught:
        JobDescription.parse(description(**fields))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_text_that_is_no_json() -> None:
    with pytest.raises(UserError, match="job description"):
        JobDescription.parse("{")


def test_addresses_as_numbers() -> None:
    assert mac_bytes("02:00:00:00:00:Fe") == b"\x02\0\0\0\0\xfe"
    assert ip_integer("10.0.1.2") == 0x0A000102
