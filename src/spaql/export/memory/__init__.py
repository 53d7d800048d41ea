"""Controllers with memory as code: one program, written in several languages, with its state."""
