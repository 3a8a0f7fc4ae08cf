"""How fragments get through: pure state machines (sender, collector), and batches over a raw socket."""
