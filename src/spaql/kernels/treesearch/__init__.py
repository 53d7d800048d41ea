"""Kernels of TreeSearch: rollouts of candidate trees, and CMA-ES."""
