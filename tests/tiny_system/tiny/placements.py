"""A placement of one's own: `--placement near-server --programmable 2`."""

from __future__ import annotations

from gradbed.plugin import RateSolver


def near_server(solver: RateSolver, programmable: int, seed: int) -> list[str]:
    """Return the switches nearest to the server's top-of-rack switch, and of equally near ones the best alone."""
    problem = solver.problem

    def rank(switch: str) -> tuple[int, float]:
        return problem.routes.distance(switch, problem.server_tor), -solver.gamma([switch])

    return sorted(problem.candidates, key=rank)[:programmable]
