"""A controller of the oven where the dead time is not the one that it was designed for.

    spaql train spaql/Oven-v0 --algo treesearch --total-timesteps 5000000 --seed 0 --out runs/oven
    python benchmarks/dead_time.py runs/oven

100 fresh episodes of the plant itself, with dead times from two to five samples; three are modelled.
"""

import argparse
import dataclasses

import spaql
from spaql.evaluation import evaluate_control
from spaql.problems import find_dynamics
from spaql.tables import markdown


def main() -> None:
    """Print a row for each dead time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run")
    given = parser.parse_args()
    policy, oven, rows = spaql.load(given.run).policy, find_dynamics("spaql/Oven-v0"), []
    assert oven is not None
    for delay in (2, 3, 4, 5):
        late = dataclasses.replace(oven, id=f"benchmark/Oven{delay}-v0", delay=delay)
        found, control = evaluate_control(policy, spaql.make_problem(late), episodes=100, seed=1)
        (level,), (heat,) = control.tracking, control.actuators
        rows.append(
            {
                "dead time": f"{delay} samples",
                "return": f"{found.mean:.1f}",
                "worst episode": f"{found.returns.min():.1f}",
                "overshoot": f"{level.overshoot:.0%}",
                "error at rest": f"{level.error_at_rest:.2f}",
                "movement": f"{heat.movement:.1%}",
                "reversals a second": f"{heat.reversals:.3f}",
            }
        )
    print(markdown(rows))


if __name__ == "__main__":
    main()
