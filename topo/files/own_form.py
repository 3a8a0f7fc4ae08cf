"""Topologies in YAML: hosts, switches with tiers, links with what each does to packets (docs/topologies.md)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from gradbed.common.errors import UserError
from gradbed.common.yaml_numbers import bounded_loader
from gradbed.topo.files.description import TIER, Described, HostDescription, LinkDescription, about
from gradbed.topo.graph import Topology
from gradbed.topo.link import LinkModel


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class LinkFields(_Part):
    """Properties that a link gives itself; the command's options give the others."""

    rate_mbps: float | None = Field(default=None, gt=0)
    delay_us: float | None = Field(default=None, ge=0)
    jitter_us: float | None = Field(default=None, ge=0)
    loss: float | None = Field(default=None, ge=0, lt=1)
    duplicate: float | None = Field(default=None, ge=0, lt=1)
    bit_error_rate: float | None = Field(default=None, ge=0, lt=1)
    queue_packets: int | None = Field(default=None, ge=1)
    pfc_xoff_bytes: int | None = Field(default=None, ge=0)
    pfc_xon_bytes: int | None = Field(default=None, ge=0)

    def described(self, a: str, b: str, ports: tuple[int | None, int | None] = (None, None)) -> LinkDescription:
        return LinkDescription(
            a,
            b,
            *ports,
            latency=None if self.delay_us is None else f"{self.delay_us:f}us",
            rate_mbps=self.rate_mbps,
            loss_percent=None if self.loss is None else 100 * self.loss,
            queue_packets=self.queue_packets,
            jitter_us=self.jitter_us,
            duplicate=self.duplicate,
            bit_error_rate=self.bit_error_rate,
            pfc_xoff_bytes=self.pfc_xoff_bytes,
            pfc_xon_bytes=self.pfc_xon_bytes,
        )


class _Link(LinkFields):
    ports: Annotated[list[int], Field(min_length=2, max_length=2)] | None = None


class _Host(_Part):
    label: str | None = None
    ip: str | None = None
    mac: str | None = None
    gateway: str | None = None
    gateway_mac: str | None = None


class _Switch(_Part):
    label: str | None = None
    tier: str = TIER
    number: int | None = None


class _File(_Part):
    """links: [a, b] or [a, b, {rate_mbps: ...}]. link: of all that do not say it themselves."""

    hosts: dict[str, _Host | None]
    switches: dict[str, _Switch | None]
    links: list[Annotated[list[Any], Field(min_length=2, max_length=3)]]
    link: LinkFields = LinkFields()


def describe(path: Path) -> Described:
    """Read a file in gradbed's own form.

    Raises:
        UserError: It is no YAML; with the line. Also pydantic's ValidationError.
    """
    import yaml  # none of the layers for help texts has it

    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=bounded_loader())
    except OSError as error:
        raise UserError(f"it cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"line {mark.line + 1}: "
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        raise UserError(f"{where}it is no YAML: {problem}") from None
    except RecursionError:
        raise UserError("it is nested too deeply") from None
    file = _File.model_validate(data)
    usual = file.link.model_dump(exclude_none=True)
    links = []
    for a, b, *fields in file.links:
        own = fields[0] if fields else {}
        if not isinstance(own, dict):
            raise UserError(f"the link of {a} and {b}: write [{a}, {b}, {{rate_mbps: 10}}], not {own!r}")
        with about(f"the link of {a} and {b}"):
            link = _Link.model_validate({**usual, **own})
        links.append(link.described(str(a), str(b), tuple(link.ports) if link.ports else (None, None)))  # type: ignore[arg-type]
    switches = {name: each or _Switch() for name, each in file.switches.items()}
    return Described(
        hosts=tuple(
            HostDescription(name, each.ip, each.mac, each.gateway, each.gateway_mac, on_link=False)
            for name, each in ((name, each or _Host()) for name, each in file.hosts.items())
        ),
        switches=tuple(switches),
        links=tuple(links),
        tiers={name: each.tier for name, each in switches.items()},
        numbers={name: each.number for name, each in switches.items() if each.number is not None},
        labels={name: each.label for name, each in (*file.hosts.items(), *switches.items()) if each and each.label},
    )


def as_yaml(topology: Topology) -> str:
    """Return the network as a file of this form: read again, it is the same. Rates are those of its links."""
    import yaml

    has_pfc = any(link.model.pfc_xoff_bytes for link in topology.links)

    def fields(model: LinkModel) -> dict[str, Any]:
        found = {
            "rate_mbps": None if model.rate_bps is None else model.rate_bps / 1e6,
            "delay_us": model.delay_us,
            "jitter_us": model.jitter_us,
            "loss": model.loss,
            "duplicate": model.duplicate,
            "bit_error_rate": model.bit_error_rate or None,
            "queue_packets": model.queue_packets,
            "pfc_xoff_bytes": model.pfc_xoff_bytes if has_pfc else None,
            "pfc_xon_bytes": model.pfc_xon_bytes if has_pfc else None,
        }
        return {name: value for name, value in found.items() if value is not None}

    models = Counter(link.model for link in topology.links).most_common(1)
    usual = fields(models[0][0]) if models else {}
    labels = {name: {"label": label} for name, label in topology.labels}
    switches = {
        each.name: {**labels.get(each.name, {}), "tier": each.tier, "number": each.number}
        for each in topology.switches
    }
    hosts = {
        host.name: {
            **labels.get(host.name, {}),
            "ip": f"{host.ip}/{host.prefix_bits}",
            "mac": host.mac,
            "gateway": host.gateway_ip,
            "gateway_mac": host.gateway_mac,
        }
        for host in topology.hosts
    }
    links = []
    for each in topology.links:
        own = {name: value for name, value in fields(each.model).items() if usual.get(name) != value}
        links.append([each.a.node, each.b.node, {"ports": [each.a.port, each.b.port], **own}])

    def line(value: Any) -> str:
        return str(yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000)).rstrip("\n")

    return "\n".join(
        [
            f"link: {line(usual)}",
            "switches:",
            *(f"  {name}: {line(value)}" for name, value in switches.items()),
            "hosts:" if hosts else "hosts: {}",
            *(f"  {name}: {line(value)}" for name, value in hosts.items()),
            "links:" if links else "links: []",
            *(f"  - {line(value)}" for value in links),
            "",
        ]
    )
