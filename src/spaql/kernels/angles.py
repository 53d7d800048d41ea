"""Angles by basic arithmetic only, so that exported code has the same bits."""

from spaql.kernels.jit import njit_inlined


@njit_inlined
def arc_tangent(y: float, x: float) -> float:
    """Return the angle of the point (x, y), from -pi to pi, and 0 for the origin.

    The rational approximation of the Cephes library, with a relative error below 3e-16. It needs basic
    arithmetic only, so that exported code has the same bits, whatever the library of the machine.
    """
    a = -y if y < 0.0 else y
    b = -x if x < 0.0 else x
    if a == 0.0 and b == 0.0:
        return 0.0
    steep = a > b
    t = b / a if steep else a / b
    turned = t > 0.66
    if turned:
        t = (t - 1.0) / (t + 1.0)
    z = t * t
    p = -8.750608600031904122785e-1 * z - 1.615753718733365076637e1
    p = p * z - 7.500855792314704667340e1
    p = p * z - 1.228866684490136173410e2
    p = p * z - 6.485021904942025371773e1
    q = z + 2.485846490142306297962e1
    q = q * z + 1.650270098316988542046e2
    q = q * z + 4.328810604912902668951e2
    q = q * z + 4.853903996359136964868e2
    q = q * z + 1.945506571482613964425e2
    angle = t + t * (z * p / q)
    if turned:
        angle = angle + 0.7853981633974483
    if steep:
        angle = 1.5707963267948966 - angle
    if x < 0.0:
        angle = 3.141592653589793 - angle
    if y < 0.0:
        angle = -angle
    return angle


@njit_inlined
def shorter_way(error: float) -> float:
    """Return the difference of two angles from -pi to pi, the shorter way round."""
    if error > 3.141592653589793:
        return error - 6.283185307179586
    if error < -3.141592653589793:
        return error + 6.283185307179586
    return error
