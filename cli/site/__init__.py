"""The documents as a site to browse (MkDocs)."""
