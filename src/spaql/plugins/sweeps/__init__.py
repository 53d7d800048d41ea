"""Sweeps: a run is data, a sweep executes the runs of a study, results are a tidy table."""
