"""What runs the switches of an emulated network: one process for all, BMv2, Open vSwitch, or several of these."""
