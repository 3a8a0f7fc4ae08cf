"""Drop sites of a program that p4c 1.2.4.2 compiled, against what its source says."""

from __future__ import annotations

import json
from pathlib import Path

from gradbed.switch.bmv2_json.drop_sites import DropSites
from gradbed.switch.bmv2_json.load import load_program

P4C = Path(__file__).parent / "p4c"


def test_every_way_to_drop_has_a_number_of_its_own() -> None:
    sites = DropSites(load_program(json.loads((P4C / "router.json").read_text())))
    texts = {number: str(site) for number, site in sites.by_number.items()}
    # Table routes has the action drop, table acl the action deny; the control calls drop in two places, and p4c makes
    # a table without a key of each. This JSON names no lines.
    assert sorted(set(texts.values())) == [
        "because egress_spec was the drop port",
        "by RouterIngress.deny",
        "by RouterIngress.deny on a hit in table RouterIngress.acl",
        "by RouterIngress.deny on a miss in table RouterIngress.acl",
        "by RouterIngress.drop",
        "by RouterIngress.drop on a hit in table RouterIngress.routes",
        "by RouterIngress.drop on a miss in table RouterIngress.routes",
    ]
    assert max(texts) < sites.count
    assert all((number % 2 == 1) == (" on a miss " in text) for number, text in texts.items())
