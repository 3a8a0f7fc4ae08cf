"""`python -m gradbed` and the command `gradbed` that pip installs."""

from cli.__main__ import start

if __name__ == "__main__":
    start()
