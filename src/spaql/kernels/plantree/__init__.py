"""Kernels of PlanTree: piecewise affine plants, planning on them, and local search of controllers."""
