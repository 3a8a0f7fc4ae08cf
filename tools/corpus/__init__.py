"""Other people's P4 programs with gradbed's compiler and with p4c: `python -m tools.corpus FOLDER`."""
