"""What a switch keeps between packets: a module for each kind of state.

Each reads in the same order: the way to the state through the runtime library, its description in P4Info and BMv2
JSON, and its P4Runtime entity. Those of tables and action profiles are several modules. `device.py` lists the kinds;
`pipeline.py` and `running_device.py` put them together.
"""
