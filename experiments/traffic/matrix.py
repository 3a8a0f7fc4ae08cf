"""A traffic matrix in a CSV file: rates in Mbit/s."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.common.suggestion import suggestion
from gradbed.experiments.traffic.patterns import Pair
from gradbed.topo.graph import Topology


def read_matrix(path: Path, topology: Topology) -> dict[Pair, float]:
    """Nominal Mbit/s for each pair of hosts that has any.

    Either a table, with the receivers in the first line and a sender at the beginning of each other; or lines
    "sender,receiver,rate" under the heading "from,to,mbps". UserError with FILE:LINE.
    """
    try:
        with path.open(newline="") as file:
            lines = [
                (number, [cell.strip() for cell in row]) for number, row in enumerate(csv.reader(file), 1) if row
            ]
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is no CSV file: {error}") from None
    if len(lines) < 2:
        raise UserError(f"{path}:1: a heading and a line for each sender should stand here")
    names = [host.name for host in topology.hosts]
    (_, heading), *rest = lines
    found: dict[Pair, float] = {}
    for number, row in rest:
        where = f"{path}:{number}"
        if len(row) != len(heading):
            raise UserError(f"{where}: {len(row)} cells instead of {len(heading)}")
        if [cell.lower() for cell in heading] == ["from", "to", "mbps"]:
            cells = [(row[0], row[1], row[2])]
        else:
            cells = [(row[0], receiver, rate) for receiver, rate in zip(heading[1:], row[1:], strict=True)]
        for sender, receiver, rate in cells:
            for name in (sender, receiver):
                if name not in names:
                    raise UserError(f"{where}: {topology.name} has no host {name!r}{suggestion(name, names)}")
            rate_mbps = _rate(rate, where)
            if rate_mbps and sender == receiver:
                raise UserError(f"{where}: {sender} cannot send to itself")
            if (sender, receiver) in found:
                raise UserError(f"{where}: {sender} to {receiver} stands twice")
            if rate_mbps:
                found[sender, receiver] = rate_mbps
    if not found:
        raise UserError(f"{path}: nobody sends anything")
    return found


def _rate(text: str, where: str) -> float:
    try:
        rate_mbps = float(text or 0)
    except ValueError:
        rate_mbps = math.nan
    if not 0 <= rate_mbps < math.inf:
        raise UserError(f"{where}: {text!r} is no rate in Mbit/s")
    return rate_mbps
