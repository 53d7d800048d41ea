"""Programs: one intermediate representation of what controllers, plants and expressions compute."""
