"""Those figures of NDN (docs/ndn.md) that need more than lines, as kinds that studies name."""

from gradbed.experiments.systems.ndn.figures import byte_hops, recoveries  # noqa: F401
