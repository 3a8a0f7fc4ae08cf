"""The least tree that spans some hosts: no exchange among them loads fewer links."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np
import scipy  # of which a part is loaded when it is used: half a second

from gradbed.common.errors import UserError
from gradbed.topo.graph import Topology


def least_spanning_edges(topology: Topology, hosts: Sequence[str]) -> int:
    """Return the number of links of the least tree that connects these hosts (the Steiner tree), exactly.

    By the multi-commodity flow formulation (Wong, "A dual ascent approach for Steiner tree problems on a directed
    graph", Mathematical Programming 28, 1984): from the first host a unit flows to each of the others, over directed
    links that were bought. Its relaxation is tight on most networks, so that HiGHS hardly has to branch.

    Raises:
        UserError: The network is not connected.
    """
    root, *others = hosts
    if not others:
        return 0
    graph = nx.DiGraph()
    for link in topology.links:
        graph.add_edge(link.a.node, link.b.node)
        graph.add_edge(link.b.node, link.a.node)
    arcs, nodes = list(graph.edges), {node: index for index, node in enumerate(graph.nodes)}
    incidence = scipy.sparse.coo_array(
        (
            [1.0, -1.0] * len(arcs),
            (
                [index for a, b in arcs for index in (nodes[a], nodes[b])],
                [arc for arc in range(len(arcs)) for _ in range(2)],
            ),
        ),
        shape=(len(nodes), len(arcs)),
    )
    demands = np.zeros((len(others), len(nodes)))
    demands[:, nodes[root]] = 1
    demands[range(len(others)), [nodes[name] for name in others]] = -1
    # Columns: whether each arc is bought, then the flow of each commodity over it.
    flows = scipy.sparse.block_diag([incidence] * len(others))
    conserved = scipy.sparse.hstack([scipy.sparse.coo_array((flows.shape[0], len(arcs))), flows])
    bought = scipy.sparse.hstack(
        [
            scipy.sparse.vstack([-scipy.sparse.eye_array(len(arcs))] * len(others)),
            scipy.sparse.eye_array(len(arcs) * len(others)),
        ]
    )
    columns = len(arcs) * (1 + len(others))
    result = scipy.optimize.milp(
        np.concatenate([np.ones(len(arcs)), np.zeros(columns - len(arcs))]),
        integrality=np.concatenate([np.ones(len(arcs)), np.zeros(columns - len(arcs))]),
        bounds=scipy.optimize.Bounds(0, 1),
        constraints=[
            scipy.optimize.LinearConstraint(conserved.tocsr(), demands.ravel(), demands.ravel()),
            scipy.optimize.LinearConstraint(bought.tocsr(), -np.inf, 0),
        ],
    )
    if result.x is None:
        raise UserError(f"no tree spans {', '.join(hosts)}: {result.message}")
    return round(float(result.fun))
