"""The one exception that is meant for the person at the terminal."""


class UserError(Exception):
    """Something the user can put right. Its text is shown as it is, without a traceback; exit status 2."""

    prefix = "gradbed: "
    """Stands before the text; empty for messages that name a place themselves (file:line:column)."""
