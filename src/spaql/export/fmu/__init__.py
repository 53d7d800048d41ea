"""Controllers as FMUs: co-simulation, FMI 2.0, with sources and a binary for this platform."""
