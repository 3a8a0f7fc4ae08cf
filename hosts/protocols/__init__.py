"""Packet formats: Scapy layers define and dissect, NumPy packs and parses in batches."""
