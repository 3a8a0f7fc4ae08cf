"""What BMv2 and p4c cannot do, or are not there for, is one line; what a run on BMv2 needs is chosen by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.study.loading import check_switch_programs, suited_to_bmv2
from gradbed.experiments.systems import find_system, systems


@pytest.fixture
def bmv2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = tmp_path / "simple_switch_grpc"
    binary.write_text("")
    binary.chmod(0o755)
    monkeypatch.setenv("GRADBED_BMV2", str(binary))


@pytest.mark.usefixtures("bmv2")
@pytest.mark.parametrize("name", systems())
def test_every_system_has_a_switch_option_that_needs_the_real_clock(name: str) -> None:
    model = find_system(name).configuration
    check_switch_programs(model.model_validate({"clock": "real", "program": {"model": "bmv2"}}))
    with pytest.raises(UserError, match="bmv2 needs the real clock: use --switch gradbed, or --clock real"):
        check_switch_programs(model.model_validate({"clock": "virtual", "program": {"model": "bmv2"}}))


def test_what_is_not_installed_is_named_with_the_ways_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = find_system("aggregation").configuration
    for variable in ("GRADBED_BMV2", "GRADBED_P4C"):
        monkeypatch.setenv(variable, "/nowhere/at_all")
    for program, package in (({"model": "bmv2"}, "p4lang-bmv2"), ({"compiler": "p4c"}, "p4lang-p4c")):
        with pytest.raises(UserError, match=package) as caught:
            check_switch_programs(model.model_validate({"program": program}))
        message = str(caught.value)
        assert "\n" not in message and "WITH_BMV2=1 vagrant up" in message and "GRADBED_" in message


@pytest.mark.usefixtures("bmv2")
def test_what_bmv2_cannot_do_is_chosen_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    system = find_system("interconnect")
    values = {"clock": "virtual", "program": {"model": "bmv2"}, "topology": {"kind": "optical-electrical:3"}}
    found = system.configuration.model_validate(suited_to_bmv2(system, values, set()))
    assert (found.clock, found.routing.channels) == ("real", "uplink")
    said = capsys.readouterr().err
    assert "--clock real" in said and "--channels uplink" in said and "--delay-us" not in said


@pytest.mark.usefixtures("bmv2")
def test_what_the_user_chose_stays(capsys: pytest.CaptureFixture[str]) -> None:
    system = find_system("interconnect")
    values = {"clock": "virtual", "topology": {"kind": "optical-electrical:3", "link": {"delay_us": 7}}}
    given = {"clock", "topology__link__delay_us", "routing__channels"}
    assert suited_to_bmv2(system, values, given) == values
    assert capsys.readouterr().err == ""
