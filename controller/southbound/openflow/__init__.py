"""OpenFlow 1.3, towards legacy and optical switches."""
