"""One target under atheris, which looks for inputs that reach code that none before reached:
python -m tests.fuzz.guided TARGET, and then what libFuzzer takes. `python -m tests.fuzz` calls this."""

from __future__ import annotations

import random
import sys

import atheris


def main(name: str, arguments: list[str]) -> None:
    with atheris.instrument_imports(include=["gradbed"], enable_loader_override=False):
        from tests.fuzz.parsers.mutation import mutated
        from tests.fuzz.parsers.table import TARGETS

        target = TARGETS[name]
        for seed in target.seeds():
            # Much is loaded late. It is to tell where inputs get, and its loading is not the first input's time.
            target.check(seed)

    def one_input(data: bytes) -> None:
        target.check(data)

    def change(data: bytes, most_bytes: int, seed: int) -> bytes:
        rng = random.Random(seed)
        made = mutated(data, rng) if rng.randrange(2) else atheris.Mutate(data, len(data) + 64)
        return bytes(made[:most_bytes])

    atheris.Setup([sys.argv[0], *arguments], one_input, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
