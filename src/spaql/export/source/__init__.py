"""Controllers as source code of general languages, each written from the same program and run."""
