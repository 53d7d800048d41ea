"""The replay memory, its encoding for learned plants, and what is summed and fitted in a fixed order."""
