"""Display names of algorithms and problems."""

from collections.abc import Mapping
from types import MappingProxyType

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "aql": "AQL",
        "spaql": "SPAQL",
        "spaql-ts": "SPAQL-TS",
        "plantree": "PlanTree",
        "treesearch": "TreeSearch",
        "classical": "Textbook",
        "sac": "SAC",
        "tqc": "TQC",
        "td3": "TD3",
        "dqn": "DQN",
        "qr-dqn": "QR-DQN",
        "ppo": "PPO",
        "trpo": "TRPO",
        "ars": "ARS",
        "random": "Random",
        "random-published": "Random, torque in [0, 2] Nm",
        "pendulum": "Pendulum",
        "pendulum-scaled": "Pendulum, rewards scaled",
        "pendulum5": "Pendulum, 5 torques",
        "cartpole200": "CartPole, 200 steps",
    }
)
