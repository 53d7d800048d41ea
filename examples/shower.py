"""A shower at 38 °C whose taps react late, next to a tuned PID controller."""

import spaql


def start(rng):
    """Draw the first state."""
    return rng.uniform(15.0, 45.0), 38.0, 0.0


def step(state, action):
    """Return the next state, the reward, and whether the episode ends."""
    warmth, wanted, late = state
    mixed = 12.0 + 48.0 * late  # cold to hot
    return (warmth + 0.3 * (mixed - warmth), wanted, action[0]), -abs(warmth - wanted), False


plant = spaql.Dynamics(
    id="Shower-v0", start=start, step=step, observe=lambda state: state[:2], horizon=60, sample_time=1.0,
    observations={"water [°C]": (10.0, 60.0), "wanted [°C]": (30.0, 45.0)}, actions={"tap": (0.0, 1.0)},
    setpoints={"water [°C]": "wanted [°C]"}, noise={"water [°C]": 0.2}, delay=1,
)  # fmt: skip
agent = spaql.TreeSearch(plant, seed=0).learn(total_timesteps=1_000_000)
print(spaql.controllers.text(agent.policy, digits=3))
pi = spaql.classical.tune(agent.problem, "pid", steps=1_000_000)
for name, controller in (("learned", agent), ("PID, tuned", pi.policy)):
    print(f"{name:10} {spaql.evaluate(controller, agent.problem, episodes=500).mean:.1f}")
