"""Kernels of PlanTree: piecewise affine plants, planning in them, and local search of controllers."""
