"""What a switch keeps between packets: a folder for each kind of state.

In each, `access.py` is the way to it through the runtime library, `codec.py` what P4Info and BMv2 JSON say of it, and
`entity.py` its P4Runtime entity. `switch_state.py` and `kinds.py` list the kinds; `pipeline.py` and
`forwarding_state.py` put them together.
"""
