"""The closed loop."""
