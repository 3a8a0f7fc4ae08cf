"""The speed of the switch, compared with a forwarder without P4 and with BMv2."""
