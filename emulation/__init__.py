"""A graph as a running network of the kernel: Mininet's hosts, the processes of its switches, links."""

from gradbed.common.modules import INSTALLED

if INSTALLED:
    from gradbed.emulation.debian_mininet import find_debian_mininet

    find_debian_mininet()
