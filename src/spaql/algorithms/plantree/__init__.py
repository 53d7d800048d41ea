"""The phases of PlanTree in learned plants: explore, choose, play; and controllers from logs."""
