"""The closed loop: episodes in compiled dynamics or in Gymnasium, with every step counted."""

from spaql.simulate.batches import fresh_episodes
from spaql.simulate.candidates import (
    CandidateEpisodes,
    CandidatePlayer,
    Candidates,
)
from spaql.simulate.play import play, record, record_random
from spaql.simulate.returns import Episode, EpisodeSummary, Evaluation, Interactions, Phase
from spaql.simulate.runner import EpisodeRunner
from spaql.simulate.seeds import Purpose, generator, try_seeds

__all__ = [
    "CandidateEpisodes",
    "CandidatePlayer",
    "Candidates",
    "Episode",
    "EpisodeRunner",
    "EpisodeSummary",
    "Evaluation",
    "Interactions",
    "Phase",
    "Purpose",
    "fresh_episodes",
    "generator",
    "play",
    "record",
    "record_random",
    "try_seeds",
]
