"""Options of benchmarks that name several sizes."""

from __future__ import annotations

from gradbed.common.errors import UserError


def sizes_of(text: str, form: str = "K") -> list[tuple[int, ...]]:
    """What --sizes says: positive whole numbers of a form such as K:M, separated by commas. UserError for anything
    else."""
    parts = form.count(":") + 1
    try:
        found = [tuple(map(int, size.split(":"))) for size in text.split(",")]
        if all(len(size) == parts and min(size) > 0 for size in found):
            return found
    except ValueError:
        pass
    raise UserError(f"--sizes: {text!r} is not of the form {form},{form},... with positive whole numbers")
