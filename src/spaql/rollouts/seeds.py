"""Random numbers as a function of a seed, a purpose and an index: nothing to keep between iterations."""

from enum import IntEnum

import numpy as np

from spaql.values import whole_number


class Purpose(IntEnum):
    """What random numbers are for; streams of different purposes are independent."""

    TRAINING = 0
    EVALUATION = 1
    SELECTION = 2
    DISTURBANCE = 3
    TRY_SEEDS = 4
    TRY_SELECTION = 5


def generator(seed: int, purpose: Purpose, index: int) -> np.random.Generator:
    """Give the random stream of an iteration (or of a batch of evaluation episodes).

    Every iteration has a stream of its own, so a run that is resumed goes on to the same bytes.

    Examples
    --------
    >>> a, b = (generator(0, Purpose.TRAINING, 5).random() for _ in range(2))
    >>> a == b
    True
    """
    sequence = np.random.SeedSequence(whole_number("seed", seed, least=0), spawn_key=(purpose, index))
    return np.random.Generator(np.random.PCG64(sequence))


def try_seeds(seed: int, tries: int) -> list[int]:
    """Return the seeds of several tries, all different: the given one, then others that are drawn from it.

    Fewer tries have the first of the same seeds.

    Examples
    --------
    >>> len(set(try_seeds(7, 5))), try_seeds(7, 5)[:3] == try_seeds(7, 3), try_seeds(7, 1)
    (5, True, [7])
    """
    rng, seeds = generator(seed, Purpose.TRY_SEEDS, 0), [seed]
    while len(seeds) < tries:
        drawn = int(rng.integers(2**32))
        if drawn not in seeds:
            seeds.append(drawn)
    return seeds
