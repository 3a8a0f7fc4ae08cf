"""Quotients of linear programs: the same optimum from a smaller program, by what is alike in rows and columns.

Colour refinement splits rows and columns until all rows of a class have the same coefficients towards every class of
columns, and the other way round (an equitable partition). One row and one column for each class then make a program
with the same optimum, and two programs with the same classes have the same optimum: Grohe, Kersting, Mladenov and
Selman, "Dimension Reduction via Colour Refinement" (ESA 2014), theorem 5.3. docs/placement.md, "Workers that are
alike", has the short proof.

Colours are 64-bit hashes of what a row or column sees, so two different ones are mistaken for each other with a
probability of about 1e-12 for programs of some thousand rows; nothing here depends on order, chance or process.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # of which a part is loaded when it is used: half a second
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Signature = tuple[int, ...]


@dataclass(frozen=True)
class SparseProgram:
    """Maximise profit @ v subject to matrix @ v <= upper and v >= lower."""

    matrix: scipy.sparse.csr_array
    """Of shape (rows, columns)."""
    upper: Floats
    """Of shape (rows,)."""
    profit: Floats
    """Of shape (columns,)."""
    lower: Floats
    """Of shape (columns,)."""


@dataclass(frozen=True)
class Quotient:
    """A program of one row and one column for each class."""

    program: SparseProgram
    column_class: Integers
    """The class of each column of the original, so that solution[column_class] solves the original."""
    signature: Signature
    """Equal for two programs only if their quotients are the same but for the order of rows and columns."""


def quotient(program: SparseProgram) -> Quotient:
    """Return the quotient of a program by its coarsest equitable partition (Grohe et al., theorem 5.3)."""
    row_colours, column_colours, rounds = _stable_colours(program)
    _, representatives = np.unique(row_colours, return_index=True)
    classes, first, column_class, sizes = np.unique(
        column_colours, return_index=True, return_inverse=True, return_counts=True
    )
    rows = program.matrix[representatives]
    merged = scipy.sparse.csr_array(
        (rows.data, column_class[rows.indices], rows.indptr), shape=(len(representatives), len(classes))
    )
    merged.sum_duplicates()
    return Quotient(
        SparseProgram(merged, program.upper[representatives], program.profit[first] * sizes, program.lower[first]),
        column_class,
        (rounds, *program.matrix.shape, int(_mix(row_colours).sum()), int(_mix(column_colours).sum())),
    )


def _stable_colours(program: SparseProgram) -> tuple[Hashes, Hashes, int]:
    """Return colours of rows and columns once no round splits a class any more, and the number of rounds."""
    forth = program.matrix
    forth = scipy.sparse.csr_array((_hashes(forth.data), forth.indices, forth.indptr), shape=forth.shape)
    back = forth.T.tocsr()
    rows = _hashes(program.upper)
    columns = _mix(_hashes(program.profit) * np.uint64(3) + _hashes(program.lower))
    rounds, classes = 0, 0
    while True:
        rows = _mix(rows * np.uint64(3) + forth @ _mix(columns))
        columns = _mix(columns * np.uint64(3) + back @ _mix(rows))
        rounds += 1
        found = len(np.unique(rows)) + len(np.unique(columns))
        if found == classes:
            return rows, columns, rounds
        classes = found


def _hashes(values: Floats) -> Hashes:
    # Adding 0.0 makes one zero of -0.0 and 0.0.
    return _mix((np.ascontiguousarray(values, dtype=np.float64) + 0.0).view(np.uint64))


def _mix(values: Hashes) -> Hashes:
    """Return the output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
