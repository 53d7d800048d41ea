"""Random streams as a function of a seed, a purpose and an index, without state between iterations."""

from enum import IntEnum

import numpy as np

from spaql.values import whole_number


class Purpose(IntEnum):
    """The use of a random stream; streams of different purposes are independent."""

    TRAINING = 0
    EVALUATION = 1
    SELECTION = 2
    DISTURBANCE = 3
    TRY_SEEDS = 4
    TRY_SELECTION = 5


def generator(seed: int, purpose: Purpose, index: int) -> np.random.Generator:
    """Return the random stream of an iteration (or of a batch of evaluation episodes).

    Every iteration has its own stream, so that a resumed run ends in the same bytes.

    Examples
    --------
    >>> a, b = (generator(0, Purpose.TRAINING, 5).random() for _ in range(2))
    >>> a == b
    True
    """
    sequence = np.random.SeedSequence(whole_number("seed", seed, least=0), spawn_key=(purpose, index))
    return np.random.Generator(np.random.PCG64(sequence))


def try_seeds(seed: int, tries: int) -> list[int]:
    """Return different seeds for several tries: the given one, then others that are derived from it.

    The seeds of fewer tries are a prefix of those of more.

    Examples
    --------
    >>> len(set(try_seeds(7, 5))), try_seeds(7, 5)[:3] == try_seeds(7, 3), try_seeds(7, 1)
    (5, True, [7])
    """
    rng = generator(seed, Purpose.TRY_SEEDS, 0)
    seeds = [seed]
    while len(seeds) < tries:
        drawn = int(rng.integers(2**32))
        if drawn not in seeds:
            seeds.append(drawn)
    return seeds
