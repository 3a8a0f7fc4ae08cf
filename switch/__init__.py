"""What a switch is: P4_16 compiler, C code generator, data plane, P4Runtime server, Mininet nodes."""
