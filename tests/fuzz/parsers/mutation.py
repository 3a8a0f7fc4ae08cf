"""Inputs made of others: bytes, pieces of text, or values of a document changed."""

from __future__ import annotations

import json
import random
import re

import yaml

from tests.unit.codegen.test_malformed import damage, places

_PIECE = re.compile(r"\w+|\s+|.", re.DOTALL)
STRANGE = ["99999999999999999999", "-1", "#", "{#}", "[0]", "8s255", "0w1", "\\", "é", "\x00", "}", "("]
_NUMBERS = (0, 1, 127, 128, 253, 254, 255)
_LONG = (".inf", ".nan", "1e999", "0x" + "f" * 40, "\n", "'*/\"", "../../x", "/", "%n", "&a", "*a", "<<", "!!x", "~")


def changed_text(text: str, rng: random.Random) -> str:
    """Pieces cut out, put in, exchanged."""
    pieces = _PIECE.findall(text)
    for _ in range(rng.randint(1, 4)):
        if not pieces:
            break
        at, other = rng.randrange(len(pieces)), rng.randrange(len(pieces))
        kind = rng.randrange(5)
        if kind == 0:
            del pieces[at : at + rng.randint(1, 40)]
        elif kind == 1:
            pieces.insert(at, rng.choice([pieces[other], *STRANGE]))
        elif kind == 2:
            pieces[at] = rng.choice([pieces[other], *STRANGE])
        elif kind == 3:
            pieces[at], pieces[other] = pieces[other], pieces[at]
        else:
            pieces[at:at] = pieces[other : other + rng.randint(1, 40)]
    return "".join(pieces)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Another input: as a document where this one is JSON or YAML, as text where it is that, or as bytes."""
    kind = rng.randrange(3)
    if kind == 0 or b"\0" in data:
        return _changed_bytes(data, rng)
    text = data.decode("utf-8", "replace")
    if kind == 1:
        return _changed_document(text, rng).encode("utf-8", "replace")
    pieces = changed_text(text, rng)
    return pieces.replace(rng.choice(_PIECE.findall(pieces) or [""]), rng.choice(_LONG), 1).encode("utf-8", "replace")


def _changed_bytes(data: bytes, rng: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at, end = sorted(rng.randrange(len(made) + 1) for _ in range(2))
        kind = rng.randrange(4)
        if kind == 0 and at < len(made):
            made[at] = rng.choice([*_NUMBERS, made[at] ^ 1 << rng.randrange(8)])
        elif kind == 1:
            del made[at : min(end, at + 32)]
        elif kind == 2:
            made[at:at] = made[at:end][:64]
        else:
            made[at:at] = rng.randbytes(rng.choice([1, 2, 8]))
    return bytes(made)


def _changed_document(text: str, rng: random.Random) -> str:
    """A document as JSON, which is YAML, too."""
    try:
        document = json.loads(text) if text[:1] in "{[" else yaml.safe_load(text)
        for _ in range(rng.randint(1, 3)):
            document = damage(document, rng, places(document))
        return json.dumps(document)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError, yaml.YAMLError):
        return changed_text(text, rng)
