"""How fast the switch is, beside a forwarder without P4 and BMv2."""
