"""A sweep in ten lines: a P4 program under growing load, what is late and what is lost.

./gradbed python examples/python/sweep.py
"""

from pathlib import Path

import gradbed as gb

HERE = Path(__file__).parent

study = gb.Study(
    name="gate",
    topology=gb.leaf_spine(2, 2, 4),
    program=gb.Program(HERE / "gate.p4", entries=HERE / "gate.yaml"),
    traffic={"duration_ms": 20},
    sweep={"traffic.load": [0.2, 0.5, 0.8]},
    repetitions=3,
)
results = study.run()
print(results.frame.groupby("traffic.load")[["p50_us", "p99_us", "loss"]].mean().round(3))
print(results.plot("traffic.load", "p99_us", y_scale="log").paths[0])
