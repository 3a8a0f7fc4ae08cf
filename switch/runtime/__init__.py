"""The data plane in C (program.h is the seam) and its Python bindings."""
