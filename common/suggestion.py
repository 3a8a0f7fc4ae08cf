"""What somebody may have meant who wrote a word that nothing is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any


def suggestion(word: str, known: Mapping[str, Any] | Sequence[str]) -> str:
    """Return "; did you mean ...?" if a known word is similar, otherwise the list of known words."""
    words = list(known)
    near = get_close_matches(word, words, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(words)}"
