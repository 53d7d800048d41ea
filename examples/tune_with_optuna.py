"""Hyperparameters of SPAQL-TS on CartPole, tuned with Optuna and judged with other seeds than it tuned on.

`python examples/tune_with_optuna.py` runs 20 trials of up to three agents each, a quarter of a minute once
spaql is compiled. It needs `pip install "spaql[stats]" optuna`.

Each trial trains one agent for every tuning seed, and Optuna maximises the mean of their returns in fresh
episodes. The best mean of many trials is biased upwards: it was selected because it is high. Therefore the
settings that were found and the default ones are compared on agents and episodes of seeds that no trial used.
"""

import argparse
from typing import Any

import numpy as np
import optuna

import spaql
from spaql.stats import mean_ci95, welch

DEFAULT = {"scaling": 20.0, "reference_std": 1.2, "temperature_growth": 2.0}
"""The paper's scaling for CartPole, and the defaults of `spaql.SPAQLTS`: the first trial."""
EPISODES = 100
"""Fresh episodes of each agent."""
FRESH = 10_000
"""The first of the seeds that judge; those of the tuning count from 0."""


def suggested(trial: optuna.Trial) -> dict[str, float]:
    """Return the settings that Optuna would like to try."""
    return {
        "scaling": trial.suggest_float("scaling", 0.1, 200.0, log=True),
        "reference_std": trial.suggest_float("reference_std", 0.2, 5.0, log=True),
        "temperature_growth": trial.suggest_float("temperature_growth", 1.1, 4.0),
    }


def trained_return(settings: dict[str, Any], seed: int, iterations: int) -> float:
    """Return the mean return of an agent with these settings, in episodes that it was not trained on."""
    agent = spaql.SPAQLTS("cartpole200", rollouts=10, seed=seed, **settings)
    agent.learn(iterations=iterations)
    return float(spaql.evaluate(agent, episodes=EPISODES, seed=seed + 1).mean)


def tuned(trials: int, seeds: int, iterations: int) -> optuna.Study:
    """Return a finished study; trials that are worse than the median after a seed are stopped."""

    def objective(trial: optuna.Trial) -> float:
        settings = suggested(trial)
        returns = []
        for seed in range(seeds):
            returns.append(trained_return(settings, seed, iterations))
            trial.report(float(np.mean(returns)), seed)
            if trial.should_prune():
                raise optuna.TrialPruned
        return float(np.mean(returns))

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=0),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5),
    )
    study.enqueue_trial(DEFAULT)
    study.optimize(objective, n_trials=trials)
    return study


def main() -> None:
    """Tune, then judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3, help="agents of each trial")
    parser.add_argument("--fresh-seeds", type=int, default=10, help="agents that judge, of each settings")
    parser.add_argument("--iterations", type=int, default=150, help="training episodes of each agent")
    given = parser.parse_args()

    study = tuned(given.trials, given.seeds, given.iterations)
    stopped = len(study.get_trials(states=[optuna.trial.TrialState.PRUNED]))
    print(f"{len(study.trials)} trials, {stopped} of them stopped early; the best:")
    for name, value in study.best_params.items():
        print(f"  {name:20}{value:10.4g}   (default {DEFAULT[name]:g})")
    print(
        f"return on the {given.seeds} tuning seeds: {study.best_value:.1f} (biased: the best of all trials)"
    )

    fresh = range(FRESH, FRESH + given.fresh_seeds)
    returns = {
        name: [trained_return(settings, seed, given.iterations) for seed in fresh]
        for name, settings in (("tuned", study.best_params), ("default", DEFAULT))
    }
    print(f"return on {given.fresh_seeds} fresh seeds:")
    for name, values in returns.items():
        mean, half = mean_ci95(values)
        print(f"  {name:8}{mean:8.1f} ± {half:.1f}, worst {min(values):.1f}")
    print("a is tuned, b is default:", welch(returns["tuned"], returns["default"]).sentence)


if __name__ == "__main__":
    main()
