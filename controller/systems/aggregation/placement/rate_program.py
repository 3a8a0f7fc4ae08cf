"""Problem P2 of the source (claim 3), the linear program of aggregation rates, as a sparse matrix.

The source's formulas are lost images; docs/placement.md reconstructs them from the text as constraints 1 to 5, which
the comments name. What crosses which link (constraint 5) is claim 4.

Everything is divided by the fastest link's rate, so that coefficients and bounds are near 1. The workers of a group
share one column each for x, y(sd) and y(s), which is the rate of one worker.

    columns   gamma, f, x(g) for each group, y(g, sd) for each group; then for each programmable switch s
              a(s), b(s), y(g, s) for each group
    rows      rate of each group; access link of each group; f >= y(g, sd); capacity of sd; each link; then for each s
              b(s) <= f; capacity of s; y(g, s) <= a(s) + b(s) for each group

The rest is ours. The source's program lets sd merge the sums of different switches as if they were of the same
fragments, though the fragments that a worker sends to two switches are different ones. With `arrivals` the program
holds what packets obey: yb(g, s) of y(g, s) goes on by way of sd, which needs f >= y(g, sd) + sum of yb(g, s) over s.

    columns   for each s also yb(g, s) for each group
    rows      f >= y(g, sd) + ... in place of f >= y(g, sd); for each s also y(g, s) - yb(g, s) <= a(s) and
              yb(g, s) <= b(s) for each group

Nor does it know that global sums come back, each as large as a gradient. With `returned_sums` links also carry these:
a(s) + b(s) of them on the multicast tree that passes through s, the rest r on the one that needs no other switch than
sd ("by-switch"). A link of all these trees carries gamma, for a fragment that two switches sum comes back once. Where
workers send most fragments to several switches, one tree through all of them ("together") is nearer to the truth.

    columns   also r, after the y(g, sd)
    rows      also gamma <= r + sum of a(s) + b(s) over s"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import scipy  # of which a part is loaded when it is used: half a second

from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem, returned_sum_links
from gradbed.controller.systems.aggregation.placement.quotient import Floats, Integers, SparseProgram

ReturnedSums = Literal["by-switch", "together"]
"""How global sums come back: on a tree for each programmable switch, or on one through all of them."""

GAMMA, F = 0, 1
"""The columns of gamma and f."""

A, B = 0, 1
"""The columns of a(s) and b(s) in a switch's block; its y(g, s) follow."""


@dataclass(frozen=True)
class _Entries:
    """Non-zero coefficients. Rows and columns from the number of shared ones on belong to the switch's block."""

    rows: Integers
    columns: Integers
    values: Floats


class RateProgram:
    """Build P2 for any set of programmable switches; the parts of each switch are computed once.

    Args:
        arrivals: Hold what packets obey when they arrive at the server.
        returned_sums: Count the global sums that come back, on trees of this kind.
    """

    def __init__(
        self, problem: AggregationProblem, arrivals: bool = False, returned_sums: ReturnedSums | None = None
    ) -> None:
        self.problem = problem
        self._arrivals = arrivals
        self._returned_sums = returned_sums
        self.scale_bps = float(problem.link_rates_bps.max())
        self.sizes = np.array([len(group) for group in problem.groups])
        groups, links = len(problem.groups), len(problem.link_index)
        self._rest = 2 + 2 * groups
        self._returning = int(returned_sums is not None)
        self.shared_columns = self._rest + self._returning
        self.block_columns = 2 + groups * (2 if arrivals else 1)
        self._groups = groups
        self._rate_rows, self._access_rows, self._merge_rows, self._sd_row = 0, groups, 2 * groups, 3 * groups
        self._link_rows = 3 * groups + 1
        self._rest_row = self._link_rows + links
        self._shared_rows = self._rest_row + self._returning
        self._block_rows = 2 + groups * (3 if arrivals else 1)
        self._blocks: dict[str, _Entries] = {}
        self._trees: dict[tuple[str, ...], Integers] = {}

    def x(self, group: int) -> int:
        """Return the column of a group's x."""
        return 2 + group

    def y_server_tor(self, group: int) -> int:
        """Return the column of a group's y for sd."""
        return 2 + self._groups + group

    def y(self, place: int, group: int) -> int:
        """Return the column of a group's y for the place-th programmable switch."""
        return self.block(place) + 2 + group

    def block(self, index: int) -> int:
        """Return the first column of the index-th programmable switch, that of a(s)."""
        return self.shared_columns + index * self.block_columns

    def columns(self, programmable: int) -> int:
        """Return the number of columns of a program with that many programmable switches."""
        return self.block(programmable)

    def program(self, programmable: Sequence[str], server_tor: bool = True) -> SparseProgram:
        """Return P2 for these switches. server_tor False: sd forwards only, and no switch sums."""
        parts = [self._shared]
        if not server_tor:
            kept = self._shared.columns < self.y_server_tor(0)
            parts = [_Entries(self._shared.rows[kept], self._shared.columns[kept], self._shared.values[kept])]
        for index, switch in enumerate(programmable):
            block = self._block(switch)
            parts.append(
                _Entries(
                    _shifted(block.rows, self._shared_rows, index * self._block_rows),
                    _shifted(block.columns, self.shared_columns, index * self.block_columns),
                    block.values,
                )
            )
        if self._returned_sums and server_tor:
            parts.append(self._returned(programmable))
        count = len(programmable)
        shape = self._shared_rows + count * self._block_rows, self.columns(count)
        matrix = scipy.sparse.coo_array(
            (
                np.concatenate([part.values for part in parts]),
                (np.concatenate([part.rows for part in parts]), np.concatenate([part.columns for part in parts])),
            ),
            shape=shape,
        ).tocsr()
        upper = np.concatenate([self._shared_upper, *[self._block_upper] * count])
        bounding = (np.diff(matrix.indptr) > 0) & np.isfinite(upper)
        profit = np.zeros(shape[1])
        profit[GAMMA] = 1.0
        return SparseProgram(matrix[bounding], upper[bounding], profit, np.zeros(shape[1]))

    def without_slack_rows(self, program: SparseProgram, bound: float) -> SparseProgram:
        """Drop the rows that no useful solution with gamma <= `bound` can fill, and add gamma <= 2 bound.

        The optimum is that of the whole program if it is at most the bound.

        Whatever exceeds gamma can be cut off a solution: then a group's rates add up to gamma, and a(s) + b(s), b(s)
        and f are at most gamma. So a load is at most gamma times the coefficients of the workers and sums that can
        take part in it, each counted once.
        """
        matrix = program.matrix
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        owners = self._owners(matrix.shape[1])
        pairs, first = np.unique(rows * (owners.max() + 1) + owners[matrix.indices], return_index=True)
        most = np.bincount(pairs // (owners.max() + 1), matrix.data[first], minlength=matrix.shape[0])
        kept = (program.upper <= 0) | (most * bound > program.upper)
        ceiling = scipy.sparse.csr_array(([1.0], [GAMMA], [0, 1]), shape=(1, matrix.shape[1]))
        return replace(
            program,
            matrix=scipy.sparse.vstack([matrix[kept], ceiling], format="csr"),
            upper=np.append(program.upper[kept], 2 * bound),
        )

    def _owners(self, columns: int) -> Integers:
        """Return for each column whose rates it belongs to: a group's (from 0), f, r, or a switch's."""
        groups = np.arange(self._groups)
        owners = [np.array([self._groups, self._groups]), groups, groups]
        if self._returned_sums:
            owners.append(np.array([self._groups + 1]))
        for place in range((columns - self.shared_columns) // self.block_columns):
            owners += [np.full(2, self._groups + 2 + place), groups]
            if self._arrivals:
                owners.append(groups)
        return np.concatenate(owners)

    def with_spread(self, program: SparseProgram, programmable: int, same: bool = False) -> SparseProgram:
        """Add a last column m >= y(g, sd), so that m + sum of a(s) + b(s) is gamma if all workers split alike (ours).

        The less they do, the more it is. same: it may not be more than gamma.
        """
        rows, columns = program.matrix.shape
        added = _Collector()
        for group in range(self._groups):
            added.add(group, self.y_server_tor(group), 1)
            added.add(group, columns, -1)
        if same:
            added.add(self._groups, GAMMA, -1)
            for column in np.flatnonzero(self.spread(programmable)):
                added.add(self._groups, int(column), 1)
        entries = added.entries()
        count = self._groups + same
        return SparseProgram(
            scipy.sparse.vstack(
                [
                    scipy.sparse.hstack([program.matrix, scipy.sparse.csr_array((rows, 1))]),
                    scipy.sparse.csr_array(
                        (entries.values, (entries.rows, entries.columns)), shape=(count, columns + 1)
                    ),
                ],
                format="csr",
            ),
            np.append(program.upper, np.zeros(count)),
            np.append(program.profit, 0.0),
            np.append(program.lower, 0.0),
        )

    def spread(self, programmable: int) -> Floats:
        """Return for each column of `with_spread` what one unit adds to m + sum of a(s) + b(s)."""
        spread = np.zeros(self.columns(programmable) + 1)
        spread[-1] = 1
        for place in range(programmable):
            spread[[self.block(place) + A, self.block(place) + B]] = 1
        return spread

    def link_loads(self, programmable: Sequence[str]) -> Floats:
        """Return for each column how much one unit of it adds to the loads of all links together."""
        groups = self.problem.groups
        loads = np.zeros(self.columns(len(programmable)))
        loads[F] = 1
        for index, group in enumerate(groups):
            loads[self.x(index)] = len(group) * (1 + len(self.problem.path(group.tor, self.problem.server)))
            loads[self.y_server_tor(index)] = len(group) * (1 + self._distance(group.tor, self.problem.server_tor))
            for place, switch in enumerate(programmable):
                loads[self.y(place, index)] = len(group) * (1 + self._distance(group.tor, switch))
        for place, switch in enumerate(programmable):
            distance = self._distance(switch, self.problem.server_tor)
            loads[self.block(place) + A] = distance + 1
            loads[self.block(place) + B] = distance
        return loads

    def worker_rates(self, programmable: int) -> Floats:
        """Return for each column how much one unit of it adds to the rates of all workers together."""
        sent = np.zeros(self.columns(programmable))
        for first in (self.x(0), self.y_server_tor(0), *(self.y(place, 0) for place in range(programmable))):
            sent[first : first + self._groups] = self.sizes
        return sent

    def _distance(self, switch: str, destination: str) -> int:
        return self.problem.routes.distance(switch, destination)

    @cached_property
    def access_bound(self) -> float:
        """An upper bound of gamma: every gradient leaves its worker by one link."""
        return min(group.access_rate_bps for group in self.problem.groups) / self.scale_bps

    @cached_property
    def _capacity(self) -> float:
        capacity = self.problem.switch_capacity_bps
        return np.inf if capacity is None else capacity / self.scale_bps

    @cached_property
    def _shared_upper(self) -> Floats:
        zeros = np.zeros(self._groups)
        access = np.array([group.access_rate_bps for group in self.problem.groups]) / self.scale_bps
        links = self.problem.link_rates_bps / self.scale_bps
        return np.concatenate([zeros, access, zeros, [self._capacity], links, np.zeros(self._returning)])

    @cached_property
    def _block_upper(self) -> Floats:
        return np.concatenate([[0.0, self._capacity], np.zeros(self._block_rows - 2)])

    @cached_property
    def _shared(self) -> _Entries:
        problem, found = self.problem, _Collector()
        for index, group in enumerate(problem.groups):
            found.add(self._rate_rows + index, GAMMA, 1)  # constraint 1
            for column in (self.x(index), self.y_server_tor(index)):
                found.add(self._rate_rows + index, column, -1)
                found.add(self._access_rows + index, column, 1)  # constraint 5, the worker's own link
            found.add(self._merge_rows + index, self.y_server_tor(index), 1)  # constraint 3
            found.add(self._merge_rows + index, F, -1)
            found.add(self._sd_row, self.y_server_tor(index), len(group))  # constraint 4
            # Constraint 5 (claim 4): x(w) runs to the server, y(w, sd) to sd, f over the server's link.
            self._cross(found, problem.path(group.tor, problem.server), self.x(index), len(group))
            self._cross(found, problem.path(group.tor, problem.server_tor), self.y_server_tor(index), len(group))
        self._cross(found, problem.path(problem.server_tor, problem.server), F, 1)
        return found.entries()

    def _block(self, switch: str) -> _Entries:
        if switch not in self._blocks:
            problem, found = self.problem, _Collector()
            first_row, first_column = self._shared_rows, self.shared_columns
            a, b = first_column + A, first_column + B
            # Constraint 5 (claim 4): a(s) runs to the server, b(s) to sd, y(w, s) to s.
            self._cross(found, problem.path(switch, problem.server), a, 1)
            self._cross(found, problem.path(switch, problem.server_tor), b, 1)
            found.add(self._sd_row, b, 1)  # constraint 4
            found.add(first_row, b, 1)  # constraint 3
            found.add(first_row, F, -1)
            for index, group in enumerate(problem.groups):
                y = first_column + 2 + index
                found.add(self._rate_rows + index, y, -1)  # constraint 1
                found.add(self._access_rows + index, y, 1)  # constraint 5
                found.add(first_row + 1, y, len(group))  # constraint 4
                found.add(first_row + 2 + index, y, 1)  # constraint 2
                found.add(first_row + 2 + index, a, -1)
                found.add(first_row + 2 + index, b, -1)
                if self._arrivals:  # docs/placement.md, "Arrival"
                    yb = y + self._groups
                    found.add(self._merge_rows + index, yb, 1)
                    direct_row, merged_row = (
                        first_row + 2 + self._groups + index,
                        first_row + 2 + 2 * self._groups + index,
                    )
                    found.add(direct_row, y, 1)
                    found.add(direct_row, yb, -1)
                    found.add(direct_row, a, -1)
                    found.add(merged_row, yb, 1)
                    found.add(merged_row, b, -1)
                self._cross(found, problem.path(group.tor, switch), y, len(group))
            self._blocks[switch] = found.entries()
        return self._blocks[switch]

    def _returned(self, programmable: Sequence[str]) -> _Entries:
        """Return the loads of global sums that come back (docs/placement.md, "Returned sums")."""
        found = _Collector()
        found.add(self._rest_row, GAMMA, 1)
        found.add(self._rest_row, self._rest, -1)
        if self._returned_sums == "together":
            trees = [self._tree(*programmable)]
        else:
            trees = [self._tree(), *(self._tree(switch) for switch in programmable)]
        common = functools.reduce(np.intersect1d, trees)
        self._cross(found, common.tolist(), GAMMA, 1)
        self._cross(found, np.setdiff1d(trees[0], common).tolist(), self._rest, 1)
        for place, tree in enumerate(trees[1:]):
            own = np.setdiff1d(tree, common).tolist()
            for column in (self.block(place) + A, self.block(place) + B):
                found.add(self._rest_row, column, -1)
                self._cross(found, own, column, 1)
        return found.entries()

    def _tree(self, *switches: str) -> Integers:
        """Return indices of the links along which a global sum comes back through these switches and sd."""
        if switches not in self._trees:
            pairs = returned_sum_links(self.problem, (*switches, self.problem.server_tor))
            self._trees[switches] = np.array([self.problem.link_index[pair] for pair in pairs], dtype=np.int64)
        return self._trees[switches]

    def _cross(self, found: _Collector, links: Iterable[int], column: int, value: float) -> None:
        for link in links:
            found.add(self._link_rows + link, column, value)


class _Collector:
    def __init__(self) -> None:
        self._found: list[tuple[int, int, float]] = []

    def add(self, row: int, column: int, value: float) -> None:
        self._found.append((row, column, value))

    def entries(self) -> _Entries:
        rows, columns, values = zip(*self._found, strict=True)
        return _Entries(np.array(rows), np.array(columns), np.array(values, dtype=np.float64))


def _shifted(indices: Integers, shared: int, offset: int) -> Integers:
    return np.where(indices < shared, indices, indices + offset)
