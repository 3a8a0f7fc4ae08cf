"""What `gradbed run aggregation` cannot plan: one line each, before anything runs."""

from __future__ import annotations

import sys

import pytest

from cli.main import main


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("--placement greedy", "placement greedy needs to know how many switches may be programmable"),
        ("--placement greedy --programmable -1", "must be 0 to 20 (all of this network), got -1"),
        ("--placement greedy --programmable 21", "must be 0 to 20 (all of this network), got 21"),
        ("--placement greedy --programmable 2 --switch-capacity-mbps 0", "capacity must be a positive number"),
        ("--placement server-tor --switch-capacity-mbps -3", "capacity must be a positive number"),
        ("--placement greedy --programmable 2 --demand-mbps 500", "cannot be met"),
        ("--placement greedy --programmable 2 --demand-mbps 0", "demanded rate must be positive"),
        ("--placement greedy --programmable 2 --rate-mbps 0", "has no rate"),
        ("--placement best", "--placement: Input should be 'shared-path'"),
        ("--placement explicit", "placement explicit needs the names of switches"),
        ("--placement explicit --switches e99", "no switch 'e99'"),
        ("--placement explicit --switches h3", "h3 is a host"),
        ("--placement lp --switches e1", "e1 is the server's ToR, which sums anyway"),
        ("--placement none --switches e1", "placement none chooses its own"),
        ("--programmable 2", "goes with a placement that chooses them: greedy"),
        ("--switch-capacity-mbps 2", "reckons with no capacity"),
        ("--legacy hub", "--legacy: Input should be 'none', 'openflow' or 'p4'"),
        ("--jobs 0", "--jobs: Input should be greater than or equal to 1"),
        ("--jobs 3", "3 jobs of 8 workers and a server need 27 hosts, the topology has 16"),
        ("--jobs 2 --workers 3 --slot-policy static --slots 1", "static share each of 1 slots: allow more --slots"),
        ("--slots 0", "--slots: Input should be greater than or equal to 1"),
        ("--slot-policy random", "--slot-policy: Input should be 'dynamic' or 'static'"),
        ("--window 0", "--window: Input should be greater than or equal to 1"),
        ("--congestion-control fast", "--congestion-control: Input should be 'aimd'"),
        ("--jitter-us 100 --delay-us 50", "link jitter is between 0 and the delay of 50 us, got 100 us"),
    ],
)
def test_one_line(
    options: str, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gradbed", "run", "aggregation", *options.split()])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr()
    assert (end.value.code, said.out) == (2, "")
    assert len(said.err.splitlines()) == 1
    assert said.err.startswith("gradbed: ")
    assert line in said.err
