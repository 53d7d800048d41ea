"""The comparison of PlanTree with other people's algorithms: its runs, ranking, tables and report."""
