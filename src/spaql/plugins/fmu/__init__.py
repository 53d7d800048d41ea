"""Plants that are FMUs (FMI 2.0 and 3.0, co-simulation), simulated by FMPy."""

import gymnasium

from spaql.plugins.fmu.environment import ENVIRONMENT, FMUEnv

__all__ = ["ENVIRONMENT", "FMUEnv"]

gymnasium.register(ENVIRONMENT, entry_point="spaql.plugins.fmu.environment:FMUEnv")
