"""Experiments: a run is data, a sweep executes runs, results are a tidy table."""

from spaql.experiments.run import Run
from spaql.experiments.store import RunStore
from spaql.experiments.study import grid, read_study
from spaql.experiments.sweeps import Summary, sweep
from spaql.experiments.table import Results, results

__all__ = ["Results", "Run", "RunStore", "Summary", "grid", "read_study", "results", "sweep"]
