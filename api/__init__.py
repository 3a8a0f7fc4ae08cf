"""gradbed: a packet-level runtime for the networks of distributed machine learning.

`import gradbed as gb` takes no time: each name loads what it needs when it is first used.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

# In a checkout this folder is called api, and the package's other folders stand beside it.
_folder, _name = os.path.split(os.path.dirname(os.path.realpath(__file__)))
if _name == "api":
    __path__.append(_folder)

from gradbed.common.errors import UserError  # noqa: E402
from gradbed.common.modules import lazy_names  # noqa: E402
from gradbed.common.version import VERSION as __version__  # noqa: E402, N811

if TYPE_CHECKING:
    from gradbed.live_hosts import Host
    from gradbed.live_switches import Count, Counter, Register, Switch, Table
    from gradbed.networks import Link, Network, up, virtual
    from gradbed.programs import Program
    from gradbed.results import Figure, Results, load_results
    from gradbed.studies import Study, run, systems
    from gradbed.topologies import (
        Topology,
        bcube,
        dragonfly,
        fat_tree,
        from_networkx,
        leaf_spine,
        star,
        topology,
        torus,
    )

__all__ = [
    "Count",
    "Counter",
    "Figure",
    "Host",
    "Link",
    "Network",
    "Program",
    "Register",
    "Results",
    "Study",
    "Switch",
    "Table",
    "Topology",
    "UserError",
    "__version__",
    "bcube",
    "dragonfly",
    "fat_tree",
    "from_networkx",
    "leaf_spine",
    "load_results",
    "run",
    "star",
    "systems",
    "topology",
    "torus",
    "up",
    "virtual",
]

_MODULES = {
    "gradbed.live_hosts": "Host",
    "gradbed.live_switches": "Count Counter Register Switch Table",
    "gradbed.networks": "Link Network up virtual",
    "gradbed.programs": "Program",
    "gradbed.results": "Figure Results load_results",
    "gradbed.studies": "Study run systems",
    "gradbed.topologies": "Topology bcube dragonfly fat_tree from_networkx leaf_spine star topology torus",
}
__getattr__ = lazy_names(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
