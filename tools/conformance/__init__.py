"""Tests of other repositories on gradbed's compiler and switch: `python -m tools.conformance CHECKOUT`."""
