"""Compiled functions over arrays and scalars: no classes, no Gymnasium, no hidden random state."""
