"""PlanTree: learn the plant, plan in it, and distil the plan into a small tree."""
