"""What a person typed wrongly."""

from __future__ import annotations


class CommandError(Exception):
    """One line that says what is wrong with a command."""


def integer(text: str, what: str) -> int:
    """Decimal, or hexadecimal with 0x. CommandError if it is neither, or negative."""
    try:
        number = int(text, 0)
    except ValueError:
        raise CommandError(f"{what} is a number, not {text!r}") from None
    if number < 0:
        raise CommandError(f"{what} is not negative, but {number} is")
    return number


def expect(arguments: list[str], least: int, usage: str, most: int | None = None) -> None:
    """CommandError unless there are that many arguments; `most` None means exactly `least`."""
    if not least <= len(arguments) <= (least if most is None else most):
        raise CommandError(f"usage: {usage}")
