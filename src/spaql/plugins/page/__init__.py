"""The page of a controller: what it does, in HTML that can be played with, also while it learns."""
