"""Mirrors of a plant, and their detection from its transitions."""
