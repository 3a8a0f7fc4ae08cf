"""What collectives cost: in the alpha-beta model, on an idle network of packets, and at least."""
