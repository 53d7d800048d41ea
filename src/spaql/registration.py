"""The ids of the plants that spaql ships, registered in Gymnasium without importing them.

Gymnasium is not imported for it: if it is not there yet, they are registered as soon as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import MappingProxyType, ModuleType

ENTRY_POINT = "spaql.problems.environment:DynamicsEnv"
HORIZONS = MappingProxyType(
    {
        "spaql/DCMotor-v0": 150,
        "spaql/Oven-v0": 150,
        "spaql/QuadrupleTank-v0": 100,
        "spaql/QuadrupleTankFixed-v0": 100,
        "spaql/CartPoleSwingUp-v0": 250,
        "spaql/TwoTanks-v0": 150,
        "spaql/CSTR-v0": 120,
        "spaql/Furuta-v0": 250,
        "spaql/BallAndBeam-v0": 200,
        "spaql/Crane-v0": 200,
        "spaql/BoostConverter-v0": 200,
        "spaql/Pitch-v0": 200,
        "spaql/FlexibleJoint-v0": 250,
    }
)
"""Steps of an episode, by id."""


def register(id: str, horizon: int) -> None:
    """Register a plant, which is made when its environment is; one that has the id already is replaced."""
    import gymnasium

    gymnasium.registry.pop(id, None)
    gymnasium.register(
        id,
        entry_point=ENTRY_POINT,
        max_episode_steps=horizon,
        kwargs={"dynamics": id},
    )


def register_plants() -> None:
    """Register the plants that spaql ships, now or when Gymnasium is imported."""
    if "gymnasium" in sys.modules:
        for name, horizon in HORIZONS.items():
            register(name, horizon)
    else:
        sys.meta_path.insert(0, _GymnasiumImport())


class _GymnasiumImport:
    """A finder of modules that registers the plants once Gymnasium has been imported.

    It is no subclass of `MetaPathFinder`, whose module takes long to import.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            register_plants()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
