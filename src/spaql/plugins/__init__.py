"""What the core can do without: no other code imports a plugin, the core finds it by its entry points."""
