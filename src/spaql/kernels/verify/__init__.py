"""Kernels of `spaql.verify`: tapes evaluated on points and on sets, and searches over cells."""
