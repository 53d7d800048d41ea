"""Certificates: what was proven, as a file of plain data, and their checker, without code of the prover."""
