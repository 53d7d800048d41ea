"""The comparison of PlanTree with other algorithms: its runs, ranking, tables and report."""
