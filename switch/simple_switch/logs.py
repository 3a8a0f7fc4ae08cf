"""Log lines in the form of BMv2's, to standard output or files."""

from __future__ import annotations

import logging
import logging.handlers
import sys

from gradbed.common.errors import UserError
from gradbed.switch.simple_switch.options import SwitchOptions

_LETTERS = {logging.DEBUG: "D", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "C"}


class _Form(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("[%(asctime)s.%(msecs)03d] [bmv2] [%(letter)s] [thread %(thread)d] %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        record.letter = _LETTERS.get(record.levelno, "I")
        return super().format(record)


def start_logging(options: SwitchOptions) -> None:
    """Let what this package's loggers say go where the command line wants it."""
    logger = logging.getLogger("gradbed.switch")
    logger.propagate = False
    handler: logging.Handler = logging.NullHandler()
    level = logging.CRITICAL + 1
    if options.log_console or options.log_file:
        level = options.log_level
    if options.log_console:
        handler = logging.StreamHandler(sys.stdout)
    elif options.log_file:
        try:
            handler = logging.handlers.RotatingFileHandler(
                options.log_file, maxBytes=options.log_file_bytes, backupCount=options.log_files_kept
            )
        except OSError as error:
            raise UserError(f"cannot write the log {options.log_file}: {error.strerror}") from None
    handler.setFormatter(_Form())
    logger.addHandler(handler)
    logger.setLevel(level)
