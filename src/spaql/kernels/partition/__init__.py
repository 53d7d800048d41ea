"""Kernels of partitions: balls, the equations of the paper, updates and rollouts."""
