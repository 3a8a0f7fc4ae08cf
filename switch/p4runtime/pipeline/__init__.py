"""A program made ready for P4Runtime: tables, profiles, digests, meters and packet-ins by their identifiers."""
