"""Modules for the Python that runs the tests of another repository: none imports any other of ours."""
