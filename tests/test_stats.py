"""Each statistic against SciPy, published values, and the laws that it obeys."""

import math
import sys
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from spaql.errors import MissingExtraError, SettingError, SpaqlError
from spaql.stats import (
    WelchTest,
    bootstrap_ci95,
    mean_ci95,
    t975,
    welch,
    wilson_ci95,
)

Statistic = Callable[..., np.ndarray]

# Whole numbers tie often, and add without rounding.
RUNS = st.lists(st.integers(-50, 50).map(float), min_size=2, max_size=30)
SCALES = st.sampled_from([0.25, 0.5, 2.0, 8.0])
SHIFTS = st.integers(-100, 100).map(float)


def gain(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
    return np.mean(a, axis) - np.mean(b, axis)


def samples(seed: int, *sizes: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.exponential(3.0, size) for size in sizes]


# Mean


@pytest.mark.parametrize("n", [2, 3, 5, 20, 25, 101, 102, 2000])
def test_the_interval_of_a_mean_is_students(n: int) -> None:
    (x,) = samples(0, n)
    mean, half = mean_ci95(x)
    expected = scipy.stats.t.interval(0.95, n - 1, x.mean(), scipy.stats.sem(x))
    assert (mean - half, mean + half) == pytest.approx(expected, rel=1e-9)


def test_quantiles_of_students_distribution_are_scipys() -> None:
    for df in (*range(1, 300), 1_000, 12_345, 10**6):
        assert t975(df) == pytest.approx(scipy.stats.t.ppf(0.975, df), rel=1e-10)
    with pytest.raises(SettingError, match="df is 0, and must be at least 1"):
        t975(0)


def test_a_single_run_has_no_interval() -> None:
    mean, half = mean_ci95([3.0])
    assert mean == 3.0
    assert math.isnan(half)


@pytest.mark.parametrize("n", [3, 5, 20])
def test_students_interval_covers_what_it_says(n: int) -> None:
    """1.96 standard errors hold the truth in 81, 88 and 93 % of studies; 2 standard deviations are 0.9 %."""
    rng = np.random.default_rng(n)
    hits = 0
    for _ in range(2000):
        mean, half = mean_ci95(rng.normal(5.0, 2.0, n))
        hits += abs(mean - 5.0) <= half
    assert hits / 2000 == pytest.approx(0.95, abs=0.012)


# Bootstrap


@pytest.mark.parametrize(
    ("statistic", "sizes"),
    [(np.mean, (12,)), (np.std, (25,)), (gain, (8, 20))],
)
def test_bootstrap_is_scipys(statistic: Statistic, sizes: tuple[int, ...]) -> None:
    """SciPy draws each sample by itself too; of a mean, its other methods differ by twice what is allowed."""
    data = samples(3, *sizes)
    ours = bootstrap_ci95(statistic, *data, seed=4, resamples=40_000)
    theirs = scipy.stats.bootstrap(
        data,
        statistic,
        method="percentile",
        n_resamples=40_000,
        vectorized=True,
        rng=np.random.default_rng(5),
    ).confidence_interval
    assert ours == pytest.approx(tuple(theirs), abs=0.02 * (theirs.high - theirs.low))


def test_bootstrap_of_two_runs_is_known() -> None:
    """The mean of a resample of {0, 1} is 0, 1/2 or 1 with probability 1/4, 1/2 and 1/4."""
    assert bootstrap_ci95(np.mean, [0.0, 1.0], seed=0) == (0.0, 1.0)


def test_bootstrap_stays_within_the_strata() -> None:
    assert bootstrap_ci95(gain, [7.0] * 3, [2.0] * 9, seed=0) == (5.0, 5.0)


def test_bootstrap_repeats_with_its_seed() -> None:
    (x,) = samples(6, 10)
    first = bootstrap_ci95(np.mean, x, seed=1)
    assert first == bootstrap_ci95(np.mean, x, seed=1)
    assert first == bootstrap_ci95(np.mean, x, seed=np.random.default_rng(1))
    assert first != bootstrap_ci95(np.mean, x, seed=2)


@given(RUNS, SHIFTS, SCALES)
def test_bootstrap_moves_with_its_runs(runs: list[float], shift: float, scale: float) -> None:
    x = np.array(runs)
    low, high = bootstrap_ci95(np.mean, x, seed=0, resamples=50)
    moved = bootstrap_ci95(np.mean, scale * x + shift, seed=0, resamples=50)
    assert x.min() <= low <= high <= x.max()
    assert moved == pytest.approx((scale * low + shift, scale * high + shift), abs=1e-9)


def coverage(statistic: Statistic, truth: float, locs: tuple[float, ...], n: int) -> float:
    """How often the interval of normal runs holds the truth, in 1000 studies."""
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(1000):
        strata = [rng.normal(loc, 1.0, n) for loc in locs]
        low, high = bootstrap_ci95(statistic, *strata, seed=rng, resamples=500)
        hits += low <= truth <= high
    return hits / 1000


@pytest.mark.parametrize(("n", "said"), [(5, 0.84), (10, 0.90), (20, 0.93)])
def test_the_coverage_of_few_runs_is_as_documented(n: int, said: float) -> None:
    assert coverage(np.mean, 0.0, (0.0,), n) == pytest.approx(said, abs=0.025)


@pytest.mark.parametrize(
    ("statistic", "truth", "locs"),
    [
        (gain, 2.0, (5.0, 3.0)),
    ],
)
def test_bootstrap_covers(statistic: Statistic, truth: float, locs: tuple[float, ...]) -> None:
    """8000 studies say 0.941 to 0.943; of 1000, the standard deviation is 0.0075."""
    assert coverage(statistic, truth, locs, 30) == pytest.approx(0.94, abs=0.025)


def test_bootstrap_refuses_what_it_cannot_do() -> None:
    with pytest.raises(SettingError, match="must reduce its axis"):
        bootstrap_ci95(lambda x, axis: x.mean(), [1.0, 2.0], seed=0)
    with pytest.raises(SettingError, match="resamples is 0"):
        bootstrap_ci95(np.mean, [1.0, 2.0], seed=0, resamples=0)
    with pytest.raises(SettingError, match="flat array of at least 2"):
        bootstrap_ci95(gain, [1.0, 2.0], [3.0], seed=0)


# Welch's test

# Student's sleep data, in R: t.test(extra ~ group, data = sleep)
SLEEP = (
    [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
    [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
)
# The first example of Wikipedia's page on Welch's t-test: t = -2.46, 25.0 degrees of freedom, p = 0.021
WIKIPEDIA = (
    [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4],
    [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4],
)


def test_welch_on_students_sleep_data() -> None:
    test = welch(*SLEEP)
    assert test.t == pytest.approx(-1.8608, abs=5e-5)
    assert test.df == pytest.approx(17.776, abs=5e-4)
    assert test.p == pytest.approx(0.07939, abs=5e-6)
    assert (test.low, test.high) == pytest.approx((-3.3654832, 0.2054832), abs=5e-8)
    assert test.difference == pytest.approx(0.75 - 2.33)
    assert test.runs == (10, 10)


def test_welch_on_wikipedias_example() -> None:
    test = welch(*WIKIPEDIA)
    assert (round(test.t, 2), round(test.df, 1), round(test.p, 3)) == (-2.46, 25.0, 0.021)


@pytest.mark.parametrize("sizes", [(2, 2), (2, 9), (20, 20), (5, 300)])
@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
def test_welch_is_scipys(sizes: tuple[int, int], factor: float) -> None:
    a, b = samples(8, *sizes)
    b = factor * b
    test = welch(a, b)
    theirs = scipy.stats.ttest_ind(a, b, equal_var=False)
    assert (test.t, test.df, test.p) == pytest.approx((theirs.statistic, theirs.df, theirs.pvalue), rel=1e-9)
    assert (test.low, test.high) == pytest.approx(tuple(theirs.confidence_interval(0.95)), rel=1e-8)


def test_welch_with_one_sample_that_does_not_spread() -> None:
    """It is the test of the other sample against a number."""
    (a,) = samples(9, 12)
    test = welch(a, [0.1] * 3)
    theirs = scipy.stats.ttest_1samp(a, 0.1)
    assert test.df == 11
    assert (test.t, test.p) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-9)


@pytest.mark.parametrize(("a", "difference"), [(0.1, 0.0), (2.1, 2.0), (-1.9, -2.0)])
def test_welch_without_spread_claims_nothing(a: float, difference: float) -> None:
    test = welch([a] * 3, [0.1] * 7)
    assert test.difference == pytest.approx(difference, abs=1e-12)
    assert all(math.isnan(x) for x in (test.t, test.df, test.p, test.low, test.high))
    assert "can claim nothing (3 and 7 runs)" in test.sentence


@given(RUNS, RUNS, SHIFTS, SCALES)
def test_welch_obeys_its_symmetries(a: list[float], b: list[float], shift: float, scale: float) -> None:
    test = welch(a, b)
    turned = welch(b, a)
    moved = welch(scale * np.array(a) + shift, scale * np.array(b) + shift)
    same = {"rel": 1e-6, "abs": 1e-9, "nan_ok": True}
    assert (-turned.t, turned.df, turned.p) == pytest.approx((test.t, test.df, test.p), **same)
    assert (-turned.high, -turned.low) == pytest.approx((test.low, test.high), **same)
    assert (moved.t, moved.df, moved.p) == pytest.approx((test.t, test.df, test.p), **same)
    ends = (test.difference, test.low, test.high)
    assert (moved.difference, moved.low, moved.high) == pytest.approx([scale * x for x in ends], **same)


@given(RUNS, RUNS)
def test_the_sentence_claims_what_the_interval_does(a: list[float], b: list[float]) -> None:
    test = welch(a, b)
    claims = {
        "a is higher than b by": test.low > 0,
        "a is lower than b by": test.high < 0,
        "The data do not distinguish a from b, nor show them equal": test.low <= 0 <= test.high,
        "All runs of a are equal, and all of b": math.isnan(test.low),
    }
    assert [test.sentence.startswith(words) for words in claims] == list(claims.values())


@pytest.mark.parametrize(
    ("test", "sentence"),
    [
        (
            WelchTest(5.2, 1.1, 9.3, 2.6, 38.0, 0.0131, (20, 20)),
            "a is higher than b by 5.2 (95 % interval 1.1 to 9.3; p = 0.013, Welch, 20 and 20 runs).",
        ),
        (
            WelchTest(-520.04, -930.0, -110.0, -2.6, 38.0, 0.0004, (20, 5)),
            "a is lower than b by 520 (95 % interval 110 to 930; p < 0.001, Welch, 20 and 5 runs).",
        ),
        (
            WelchTest(-0.0001, -0.0123, 0.0121, -0.1, 9.0, 0.92, (6, 6)),
            "The data do not distinguish a from b, nor show them equal: a minus b is 0.000 "
            "(95 % interval -0.012 to 0.012; p = 0.920, Welch, 6 and 6 runs).",
        ),
        (
            welch(*SLEEP),
            "The data do not distinguish a from b, nor show them equal: a minus b is -1.6 "
            "(95 % interval -3.4 to 0.2; p = 0.079, Welch, 10 and 10 runs).",
        ),
        (
            WelchTest(1e9, 1e9, 1e9, 1e20, 9.0, 0.0, (6, 6)),
            "a is higher than b by 1000000000.00000000 (95 % interval 1000000000.00000000 to "
            "1000000000.00000000; p < 0.001, Welch, 6 and 6 runs).",
        ),
    ],
)
def test_sentences(test: WelchTest, sentence: str) -> None:
    assert test.sentence == sentence


@pytest.mark.parametrize("few", [[], [1.0], [[1.0, 2.0]]])
def test_welch_needs_two_runs(few: list[float]) -> None:
    for pair in ((few, [1.0, 2.0]), ([1.0, 2.0], few)):
        with pytest.raises(SettingError, match="flat array of at least 2"):
            welch(*pair)


def test_welch_says_how_to_get_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'spaql\[stats\]'") as caught:
        welch(*SLEEP)
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, SpaqlError)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_failed_run_is_not_trimmed_away(bad: float) -> None:
    runs = [1.0, 2.0, 3.0, bad]
    with pytest.raises(SettingError, match="neither NaN nor infinity"):
        welch(runs, runs)


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (10, 10), (533, 2000), (1, 1)])
def test_wilsons_interval_is_scipys(successes: int, trials: int) -> None:
    expected = scipy.stats.binomtest(successes, trials).proportion_ci(method="wilson")
    assert wilson_ci95(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (3, 2), (-1, 5)])
def test_shares_of_nothing_have_no_interval(successes: int, trials: int) -> None:
    with pytest.raises(SettingError, match="at least 1 trial"):
        wilson_ci95(successes, trials)
