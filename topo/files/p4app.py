"""p4app.json of p4lang/p4app: targets, of which those of several switches have hosts, switches and links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field

from gradbed.common.errors import UserError
from gradbed.topo.files.description import Described
from gradbed.topo.files.tutorials import numbered_hosts, ordered_links

FORM = "p4app.json of p4lang/p4app"
MULTISWITCH = "multiswitch"


class _P4AppSwitch(BaseModel):
    entries: str | None = None
    program: str | None = None


class _Target(BaseModel):
    links: list[Annotated[list[Any], Field(min_length=2, max_length=4)]]
    hosts: dict[str, Any] = Field(default_factory=dict)
    switches: dict[str, _P4AppSwitch] = Field(default_factory=dict)


class _P4AppFile(BaseModel):
    """Nodes may be named in links alone: hosts begin with h, switches with s."""

    program: str | None = None
    targets: dict[str, Any]


def describe(data: Mapping[str, Any]) -> Described:
    """Read a p4app.json of p4lang/p4app: its target that has links, `multiswitch` first.

    Raises:
        UserError: No target has links; also pydantic's ValidationError.
    """
    file = _P4AppFile.model_validate(data)
    found = [name for name, each in file.targets.items() if isinstance(each, dict) and "links" in each]
    if not found:
        raise UserError(f"no target has links, as {MULTISWITCH} does: {', '.join(file.targets) or 'there is none'}")
    target = _Target.model_validate(file.targets[MULTISWITCH if MULTISWITCH in found else found[0]])
    ends = sorted({str(end) for link in target.links for end in link[:2]})
    hosts = list(dict.fromkeys([*target.hosts, *(end for end in ends if end.startswith("h"))]))
    switches = list(dict.fromkeys([*target.switches, *(end for end in ends if end.startswith("s"))]))
    links = ordered_links(target.links, hosts, switches, sort_switches=False)
    return Described(
        hosts=numbered_hosts(hosts, links),
        switches=tuple(switches),
        links=links,
        entries={name: each.entries for name, each in target.switches.items() if each.entries},
        programs={name: each.program for name, each in target.switches.items() if each.program},
        program=file.program,
        form=FORM,
    )
