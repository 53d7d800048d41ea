"""A room at 22 °C that then wants another temperature, next to a tuned PID controller."""

import spaql


def start(rng):
    """Draw the first state."""
    return rng.uniform(14.0, 20.0), 22.0, rng.uniform(-5.0, 10.0), rng.uniform(18.0, 24.0), 0.0


def step(state, action):
    """Return the next state, the reward, and whether the episode ends."""
    room, wanted, outdoor, later, minute = state
    room = room + 0.02 * (outdoor - room) + 1.2 * action[0]
    wanted = later if minute == 90.0 else wanted
    return (room, wanted, outdoor, later, minute + 1.0), -abs(room - wanted), False


plant = spaql.Dynamics(
    id="Room-v0", start=start, step=step, observe=lambda state: state[:3], horizon=180, sample_time=60.0,
    observations={"room [°C]": (5.0, 40.0), "wanted [°C]": (18.0, 24.0), "outdoor [°C]": (-5.0, 10.0)},
    actions={"heating": (0.0, 1.0)}, setpoints={"room [°C]": "wanted [°C]"}, noise={"room [°C]": 0.1},
)  # fmt: skip
agent = spaql.TreeSearch(plant, seed=0).learn(total_timesteps=1_000_000)
print(spaql.controllers.text(agent.policy, digits=3))
pi = spaql.classical.tune(agent.problem, "pid", steps=1_000_000)
for name, controller in (("learned", agent), ("PID, tuned", pi.policy)):
    print(f"{name:10} {spaql.evaluate(controller, agent.problem, episodes=500).mean:.1f}")
