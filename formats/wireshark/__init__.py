"""Packets in Wireshark: a dissector in Lua, made of the tables of formats/."""
