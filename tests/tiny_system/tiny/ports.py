"""What controller and agents of the system both know."""

from gradbed.plugin import Field, Header

UDP_PORT = 7000
FLOW = Header("Flow", (Field("number", 32),), UDP_PORT)
