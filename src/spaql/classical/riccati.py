"""The gains of linear regulators."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_DOUBLINGS = 40


def riccati_gains(a: Floats, b: Floats, q: Floats, r: Floats) -> Floats:
    """Return the gains K of u = -K x that are optimal for x'Qx + u'Ru: one problem, or a stack of them.

    The Riccati equation is solved by doubling (Chu, Fan, Lin and Wang, 2004).

    Examples
    --------
    >>> one = np.eye(1)
    >>> round(float(riccati_gains(one, one, one, one)[0, 0]), 4)
    0.618
    """
    r_inverse = np.linalg.inv(r)
    x = q
    g = b @ r_inverse @ np.swapaxes(b, -1, -2)
    closed = a
    eye = np.eye(a.shape[-1])
    for _ in range(_DOUBLINGS):
        w = np.linalg.solve(eye + g @ x, np.broadcast_to(eye, x.shape))
        turned = np.swapaxes(closed, -1, -2)
        grown = x + turned @ x @ w @ closed
        g = g + closed @ w @ g @ turned
        closed = closed @ w @ closed
        if np.allclose(grown, x, rtol=1e-12, atol=0.0):
            break
        x = grown
    bt = np.swapaxes(b, -1, -2)
    return np.asarray(np.linalg.solve(r + bt @ x @ b, bt @ x @ a))
