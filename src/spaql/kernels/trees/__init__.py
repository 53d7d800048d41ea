"""Kernels that find small decision trees."""
