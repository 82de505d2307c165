"""Make src/unbandit/kernels/normal_quantile.npy, the table behind the normal quantile.

The lower half of the unit interval is cut into 256 segments of width 1/512; the lowest 16 of them into 256 again, and
so on, 16 levels deep. In each segment the quantile is a polynomial of degree 7 in the distance `t` from the
segment's upper end, in units of the segment's width: it interpolates the quantile at the Chebyshev points, in 40-digit
arithmetic, and its coefficients are then rounded to float64. The segment that ends at 1/2 has no constant term, so the
quantile keeps its relative accuracy where it passes through zero.

Run:  python tools/normal_quantile_table.py   (a minute)
"""

from __future__ import annotations

from pathlib import Path

import mpmath
import numpy as np
from scipy.special import ndtri

LEVELS, SEGMENTS, FIRST, DEGREE = 16, 256, 16, 7
TARGET = Path(__file__).parents[1] / "src" / "unbandit" / "kernels" / "normal_quantile.npy"


def exact_quantile(probability: mpmath.mpf) -> mpmath.mpf:
    """Solve Phi(x) = p by Newton steps in 40-digit arithmetic, from SciPy's float64 answer."""
    x = mpmath.mpf(float(ndtri(float(probability))))
    for _ in range(3):
        x -= (mpmath.ncdf(x) - probability) / mpmath.npdf(x)
    return x


def segment_coefficients(level: int, segment: int) -> list[float]:
    """Interpolate the quantile on one segment; coefficients of t^0 ... t^7."""
    touches_the_middle = level == 0 and segment == SEGMENTS - 1
    powers = range(1, DEGREE + 2) if touches_the_middle else range(DEGREE + 1)
    powers = list(powers)[: DEGREE + 1 - touches_the_middle]
    nodes = [(1 + mpmath.cos(mpmath.pi * (2 * j + 1) / (2 * len(powers)))) / 2 for j in range(len(powers))]
    width = mpmath.mpf(1) / 512 / mpmath.mpf(16) ** level
    values = [exact_quantile((segment + 1 - t) * width) for t in nodes]
    solution = mpmath.lu_solve(mpmath.matrix([[t**k for k in powers] for t in nodes]), mpmath.matrix(values))
    return [0.0] * touches_the_middle + [float(c) for c in solution]


def main() -> None:
    mpmath.mp.dps = 40
    table = np.zeros((LEVELS, SEGMENTS, DEGREE + 1))
    for level in range(LEVELS):
        for segment in range(FIRST, SEGMENTS):
            table[level, segment] = segment_coefficients(level, segment)
        print(f"level {level + 1} of {LEVELS}", flush=True)
    np.save(TARGET, table)


if __name__ == "__main__":
    main()
