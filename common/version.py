"""The version of gradbed, for setup.py as well."""

VERSION = "0.1.0"
