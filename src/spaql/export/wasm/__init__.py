"""Controllers as WebAssembly: the exported C, compiled by clang."""
