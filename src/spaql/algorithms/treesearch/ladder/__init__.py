"""The search for a controller with memory, from the plainest one on."""
