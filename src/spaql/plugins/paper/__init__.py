"""The paper "Control with adaptive Q-learning", measured again: runs, claims, tables, figures and report."""
