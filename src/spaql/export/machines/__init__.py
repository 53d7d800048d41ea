"""Exported C on simulated microcontrollers: what it answers, how long it takes, how much room it needs."""
