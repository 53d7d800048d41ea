"""Random plants of everything that Numba accepts: what is proven of them is what they do, compiled."""

import pytest

from nightly import thorough
from plant_fuzzer import FEATURES, case, examined
from spaql.kernels.jit import ENABLED

PLANTS = thorough(200)


@pytest.mark.slow
@pytest.mark.skipif(not ENABLED, reason="a plant is played as it is compiled")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # 0 / 0 of NumPy's numbers, at a plant's first start
def test_what_is_proven_of_random_plants_is_what_they_do():
    proven = []
    for number in range(PLANTS):
        outcome = examined(number)
        assert outcome.kind != "contradicted", f"{number}: {outcome.said}\n{outcome.case.source}"
        proven += [outcome] * (outcome.proven > 0.0)
    assert len(proven) > PLANTS / 5
    assert {feature for one in proven for feature in one.case.features} >= {"NaN", "loops", "tables"}


def test_a_plant_is_drawn_from_its_number():
    assert case(7) == case(7)
    assert len({case(number).source for number in range(50)}) == 50
    assert {feature for number in range(200) for feature in case(number).features} == set(FEATURES)
