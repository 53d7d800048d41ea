"""Rollouts: episodes in compiled dynamics or in Gymnasium, with every step counted."""

from spaql.rollouts.batches import fresh_episodes
from spaql.rollouts.candidates import (
    CandidateEpisodes,
    CandidatePlayer,
    Candidates,
)
from spaql.rollouts.episode import Episode
from spaql.rollouts.interactions import Interactions, Phase
from spaql.rollouts.play import play, record, record_random
from spaql.rollouts.returns import EpisodeSummary, Evaluation
from spaql.rollouts.runner import EpisodeRunner
from spaql.rollouts.seeds import Purpose, generator, try_seeds

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
