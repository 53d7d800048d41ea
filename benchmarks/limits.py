"""The highest possible returns from the starts of the comparison: the table of `docs/compare.md`."""

from spaql.errors import SettingError
from spaql.studies.compare.limits import limit_from
from spaql.studies.compare.study import FULL, PROBLEMS, compare_runs
from spaql.studies.compare.tables import limits_table
from spaql.tables import markdown


def main() -> None:
    limits = {}
    for problem in PROBLEMS:
        runs = compare_runs(FULL, only=["plantree", problem], budgets=[1])
        starts = [(run.agent_seed + 1, run.fresh_episodes) for run in runs]
        try:
            limits[problem] = limit_from(problem, starts, FULL.limit)
        except SettingError as error:
            print(error)
    print(markdown(limits_table(limits)))


if __name__ == "__main__":
    main()
