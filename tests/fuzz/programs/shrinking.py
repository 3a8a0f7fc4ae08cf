"""Smaller cases with the same kind of finding: by leaving out choices and frames, and by making choices smaller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tests.fuzz.programs.case import FRAMES, Case, Finding, choices_of, judge, make_case
from tests.fuzz.programs.choices import Choices
from tests.fuzz.programs.program import draw_program

Numbers = Sequence[int]


Judge = Callable[[Callable[[], Case]], tuple[Case | None, Finding | None]]


class _Shrinker:
    def __init__(self, seed: int, folder: Path, attempts: int, judged: Judge) -> None:
        self._judge = judged
        self._seed = seed
        self._folder = folder
        self._left = attempts
        self.numbers: list[int] = list(range(FRAMES))
        self.choices = choices_of(seed)
        draw_program(self.choices)
        self.kind = ""
        self.best: tuple[Case | None, Finding] | None = None

    def run(self) -> None:
        found = self._found(self.choices.drawn, self.numbers)
        if found is None:
            return
        self.kind, self.best = found[2].kind, (found[1], found[2])
        for numbers in self._fewer_frames(found[2]):
            if self._take(self.choices.drawn, numbers):
                break
        before = -1
        while before != len(self.choices.drawn) and self._left > 0:
            before = len(self.choices.drawn)
            self._spans(lambda drawn, first, last: [*drawn[:first], *drawn[last:]])
            self._spans(lambda drawn, first, last: [*drawn[:first], 0, *drawn[last:]])
            self._single()
        for number in list(self.numbers):
            rest = [each for each in self.numbers if each != number]
            if rest:
                self._take(self.choices.drawn, rest)

    @staticmethod
    def _fewer_frames(finding: Finding) -> list[list[int]]:
        if finding.frame is None:
            return [[0], list(range(4)), list(range(12))]
        return [[finding.frame], list(range(finding.frame + 1))]

    def _found(self, drawn: Sequence[int], numbers: Numbers) -> tuple[Choices, Case | None, Finding] | None:
        choices = Choices(None, drawn)
        program = draw_program(choices)
        case, finding = self._judge(lambda: make_case(program, self._seed, self._folder, numbers, "shrunk"))
        return None if finding is None else (choices, case, finding)

    def _take(self, drawn: Sequence[int], numbers: Numbers) -> bool:
        if self._left <= 0:
            return False
        self._left -= 1
        found = self._found(drawn, numbers)
        if found is None or found[2].kind != self.kind:
            return False
        choices, case, finding = found
        if (len(choices.drawn), sum(choices.drawn)) > (len(self.choices.drawn), sum(self.choices.drawn)):
            return False
        self.choices, self.numbers, self.best = choices, list(numbers), (case, finding)
        return True

    def _spans(self, edit: Callable[[list[int], int, int], list[int]]) -> None:
        """The largest first, since small ones are mostly parts of them."""
        size = len(self.choices.drawn) + 1
        tried: set[tuple[int, int]] = set()
        while self._left > 0:
            left = [
                (first, last)
                for first, last in self.choices.spans
                if last - first <= size and (first, last) not in tried and last > first
            ]
            if not left:
                break
            first, last = max(left, key=lambda span: span[1] - span[0])
            if last - first < size:
                size, tried = last - first, set()
            tried.add((first, last))
            candidate = edit(self.choices.drawn, first, last)
            if candidate != self.choices.drawn and self._take(candidate, self.numbers):
                # What was behind it has moved up.
                tried = {span for span in tried if span[1] <= first}

    def _single(self) -> None:
        at = 0
        while at < len(self.choices.drawn) and self._left > 0:
            number = self.choices.drawn[at]
            for smaller in dict.fromkeys((0, 1, number // 2)):
                if smaller < number:
                    candidate = [*self.choices.drawn[:at], smaller, *self.choices.drawn[at + 1 :]]
                    if self._take(candidate, self.numbers):
                        break
            at += 1


def shrink(seed: int, folder: Path, attempts: int, judged: Judge = judge) -> tuple[Case | None, Finding] | None:
    """Return the smallest case with a finding of the same kind within `attempts`; None if there is no finding."""
    shrinker = _Shrinker(seed, folder, attempts, judged)
    shrinker.run()
    return shrinker.best
