"""Gradients in fewer bytes: what is kept, how it is written, and what becomes of the rest. Integers in, integers out,
so that what is sent and what is held back make up the gradient exactly (gradbed.hosts.learning.quantise)."""
