"""The claims of the paper's abstract and conclusions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spaql.figures.names import NAMES
from spaql.plugins.paper.criteria import BETTER, BOTH_MEASURES, Finding, at_least, better
from spaql.plugins.paper.equal_samples import BATCH, EARLY
from spaql.plugins.paper.evidence import (
    OTHER_TRPO,
    PLACES,
    PROBLEMS,
    Better,
    BetterEarly,
    Claimed,
    Part,
    Study,
)
from spaql.plugins.paper.study import ALGORITHMS, SOLVED, VARIANTS
from spaql.stats import mean_ci95

_READABLE = 50
"""Rows of a table that fit on a page."""
_SATURATED = 0.1
"""Share of the whole gain that the second half of the iterations adds at most if learning has saturated."""

_EARLIER = (
    f"at equal numbers of samples, the mean return after {BATCH:,}, {2 * BATCH:,}, ..., {EARLY * BATCH:,} of "
    "them (the best evaluation so far of SPAQL and SPAQL-TS, the last one of AQL and TRPO), is better: "
    f"{BETTER}. Samples are counted twice: training samples, as the paper counts, and all steps, which for "
    "SPAQL and SPAQL-TS include the evaluations that choose the agent"
)


def _counts_differ(study: Study, findings: Sequence[Finding]) -> str:
    by_samples, by_all_steps = (
        [finding.holds for finding in findings if f"by {count}" in finding.text]
        for count in ("training samples", "all steps")
    )
    notes = []
    if by_samples != by_all_steps:
        notes.append(
            "The two counts differ: the evaluations that choose SPAQL's agents are most of its steps."
        )
    if any("less TRPO" in finding.text for finding in findings):
        notes.append(OTHER_TRPO)
    return " ".join(notes)


def _early(problems: Sequence[str], algorithms: Sequence[str], other: str) -> list[Part]:
    return [BetterEarly(problem, algorithm, other) for problem in problems for algorithm in algorithms]


def _finite(algorithms: Sequence[str]) -> list[Part]:
    return [Better(("pendulum5", algorithm), ("pendulum", algorithm)) for algorithm in algorithms]


def _trpo_above(problem: str) -> list[Part]:
    return [Better(("pendulum", "trpo"), (problem, algorithm)) for algorithm in VARIANTS]


def _readable(study: Study) -> list[Finding]:
    mean, half = mean_ci95(study.arms("cartpole200", "spaql") / 2)
    holds = True if mean + half <= _READABLE else False if mean - half > _READABLE else None
    return [
        Finding("a policy is a table of state cells with an action each", True),
        Finding(f"CartPole: at least {mean:,.0f} rows", holds),
    ]


def _saturates(study: Study) -> Iterator[Finding]:
    for problem in PROBLEMS:
        share, half = mean_ci95(study.early[problem, "spaql"].late_gain)
        holds = True if share + half < _SATURATED else False if share - half > _SATURATED else None
        yield Finding(f"{PLACES[problem]}: the second half adds {share:.0%} of SPAQL's gain", holds)


def _of_the_way(study: Study) -> Iterator[Finding]:
    """Compare the returns on the two problems, in per cent of the way from random to TRPO."""
    for algorithm in VARIANTS:
        for i, how in enumerate(("seen", "fresh")):
            parts = {}
            for problem in PROBLEMS:
                random, trpo = (study.measures(problem, a)[i].mean() for a in ("random", "trpo"))
                parts[problem] = 100 * (study.measures(problem, algorithm)[i] - random) / (trpo - random)
            name = f"{NAMES[algorithm]}, {how}, per cent of the way on CartPole less on Pendulum"
            yield better(name, parts["cartpole200"], parts["pendulum"])


def _solves(study: Study) -> Iterator[Finding]:
    measures = study.measures("cartpole200", "spaql-ts")
    for how, returns in zip(("seen", "fresh"), measures, strict=True):
        yield at_least(how, returns, SOLVED)


HEADLINES = (
    Claimed(
        "The time-invariant policies are shown to result in a better performance than the time-variant ones "
        "in both problems studied.",
        "Abstract; Conclusions (both outperform AQL)",
        "Pendulum: SPAQL -836, SPAQL-TS -873, AQL -1287; CartPole: 193, 199, 22",
        f"SPAQL and SPAQL-TS are better than AQL on both problems, {BOTH_MEASURES}: {BETTER}",
        [Better((problem, algorithm), (problem, "aql")) for problem in PROBLEMS for algorithm in VARIANTS],
    ),
    Claimed(
        "SPAQL-TS [is] an improved version of SPAQL.",
        "Abstract; Conclusions",
        "Pendulum: -873 and -836 (no significant difference); CartPole: 199 and 193",
        f"SPAQL-TS is better than SPAQL on both problems, {BOTH_MEASURES}: {BETTER}",
        [Better((problem, "spaql-ts"), (problem, "spaql")) for problem in PROBLEMS],
    ),
    Claimed(
        "These algorithms are particularly fitted to RL problems where the action space is finite.",
        "Abstract",
        "five torques raise the return by about 100",
        "Pendulum is the one plant with both kinds of actions: AQL, SPAQL and SPAQL-TS are better with five "
        f"torques than with all, {BOTH_MEASURES}: {BETTER}",
        _finite(ALGORITHMS),
    ),
    Claimed(
        "SPAQL-TS solves the OpenAI Gym CartPole problem.",
        "Abstract; Conclusions",
        "198.53 ± 1.55",
        f"the mean over agents is {SOLVED:g} or more, which is Gym's rule, with the whole 95 % interval, "
        f"{BOTH_MEASURES}; an interval below contradicts",
        [_solves],
    ),
    Claimed(
        "SPAQL-TS solves CartPole, while also displaying a higher sample efficiency than TRPO [Conclusions: "
        "when processing the first batches of samples].",
        "Abstract; Conclusions",
        "figure only",
        f"on CartPole, {_EARLIER}",
        _early(["cartpole200"], ["spaql-ts"], "trpo"),
        _counts_differ,
        needs_trpo=True,
    ),
    Claimed(
        "The policies learned by SPAQL are interpretable, while TRPO policies are typically encoded as "
        "neural networks, and therefore hard to interpret.",
        "Abstract; Conclusions (straightforward to convert into tables)",
        "no measurement",
        "a policy is a table of rules, without loss; and a person can read it: on CartPole it has at most "
        f"{_READABLE} rows, a page. With two actions a table has at least half as many rows as arms",
        [_readable],
        "What fits a page are the smaller trees that `spaql simplify` finds; the paper has none.",
    ),
    Claimed(
        "Yielding interpretable policies while being sample-efficient are the major advantages of SPAQL.",
        "Abstract",
        "figure only",
        f"the criterion of the claim before; and for SPAQL on CartPole, {_EARLIER}",
        [_readable, *_early(["cartpole200"], ["spaql"], "trpo")],
        _counts_differ,
        needs_trpo=True,
    ),
    Claimed(
        "More empirical evidence towards the claim that SPAQL may have a higher sample-efficiency than AQL.",
        "Conclusions",
        "figure only",
        f"for SPAQL and SPAQL-TS against AQL on both problems, {_EARLIER}",
        _early(PROBLEMS, VARIANTS, "aql"),
        _counts_differ,
    ),
    Claimed(
        "The sample efficiency of SPAQL is higher than that of TRPO during the first training iterations, "
        "but "
        "then saturates.",
        "Conclusions",
        "figure only",
        f"on both problems, {_EARLIER}. It saturates if the second half of the iterations adds less than "
        f"{_SATURATED:.0%} of the whole gain, with its 95 % interval",
        [*_early(PROBLEMS, ["spaql"], "trpo"), _saturates],
        _counts_differ,
        needs_trpo=True,
    ),
    Claimed(
        "The higher sample-efficiency of SPAQL and SPAQL-TS when processing the first training batches, "
        "compared to TRPO.",
        "Conclusions",
        "figure only",
        f"for both on both problems, {_EARLIER}",
        _early(PROBLEMS, VARIANTS, "trpo"),
        _counts_differ,
        needs_trpo=True,
    ),
    Claimed(
        "Neither SPAQL nor SPAQL-TS are good choices when controlling systems with a continuous action "
        "space.",
        "Conclusions",
        "Pendulum: TRPO -177, SPAQL -836, SPAQL-TS -873",
        "on Pendulum, TRPO with as many training samples is better than SPAQL and SPAQL-TS, "
        f"{BOTH_MEASURES}: {BETTER}",
        _trpo_above("pendulum"),
        needs_trpo=True,
    ),
    Claimed(
        "It is preferable to use them in control problems where there is a finite set of control actions, "
        "such "
        "as the CartPole.",
        "Conclusions",
        "of the way from random to TRPO: 43 and 40 % on Pendulum, 97 and 101 % on CartPole",
        "SPAQL and SPAQL-TS come further from a random policy towards TRPO on CartPole than on Pendulum, "
        f"{BOTH_MEASURES}: {BETTER}",
        [_of_the_way],
        needs_trpo=True,
    ),
    Claimed(
        "One of the reasons for this is that updates to a ball do not affect its neighbors.",
        "Conclusions",
        "no measurement",
        "needs an algorithm whose updates reach neighbours, which neither the paper nor this study has",
        [lambda study: [Finding("nothing", None)]],
    ),
    Claimed(
        "Discretizing the action space seems to help in the Pendulum environment.",
        "Conclusions",
        "about 100",
        f"SPAQL and SPAQL-TS are better with five torques than with all, {BOTH_MEASURES}: {BETTER}",
        _finite(VARIANTS),
    ),
    Claimed(
        "However, the improvement is not enough to reach the reward levels of a method like TRPO, that deals "
        "directly with the continuous action space.",
        "Conclusions",
        "TRPO -177",
        f"TRPO with all torques is better than SPAQL and SPAQL-TS with five, {BOTH_MEASURES}: {BETTER}",
        _trpo_above("pendulum5"),
        needs_trpo=True,
    ),
)
