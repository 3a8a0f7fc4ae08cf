"""Benchmarks of gradbed, as ratios within one run wherever that can be: `python -m tools.bench` lists them."""
