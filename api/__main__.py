"""`python -m gradbed` and the command `gradbed` that pip installs."""

from gradbed.cli.start import start

if __name__ == "__main__":
    start()
