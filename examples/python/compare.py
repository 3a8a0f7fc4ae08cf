"""A system compared in pandas: how much faster gradients are summed, the more switches of a fat-tree sum them.

./gradbed python examples/python/compare.py
"""

import gradbed as gb

results = gb.run(
    "aggregation",
    topology=gb.fat_tree(4),
    clock="virtual",
    workload={"kind": "synthetic", "rounds": 3},
    sweep={"switches.programmable": [0, 1, 2, 4]},
)
table = results.frame.set_index("switches.programmable")[["round_time_s", "throughput_bps", "byte_hops"]]
table["speedup"] = table["round_time_s"].iloc[0] / table["round_time_s"]
print(table.to_string(float_format="{:.4g}".format))
print("all sums are exact" if results.ok else results.failures)
