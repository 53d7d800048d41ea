"""Checks of saving, loading and copying an agent."""

from __future__ import annotations

import copy

import numpy as np

from spaql.agents import Agent
from spaql.agents.agent_file import load_agent
from spaql.checks.agent_case import AgentCase
from spaql.checks.report import fail
from spaql.errors import ArchiveError


def a_loaded_agent_acts_as_before(case: AgentCase) -> None:
    """A loaded agent returns the actions of the one that was saved."""
    loaded = _reloaded(case)
    if not np.array_equal(*(case.act(agent, case.observations) for agent in (loaded, case.trained))):
        fail("They differ.")


def a_loaded_agent_is_of_its_kind(case: AgentCase) -> None:
    """A loaded agent has the class, settings, seed and history of the one that was saved."""
    loaded = _reloaded(case)
    saved = case.trained
    for what, there, expected in (
        ("kind", type(loaded), type(saved)),
        ("settings", loaded.settings, saved.settings),
        ("seed", loaded.seed, saved.seed),
        ("history", loaded.history.to_csv(), saved.history.to_csv()),
    ):
        if there != expected:
            fail(f"Its {what} is {there}, not {expected}.")


def saving_again_gives_the_same_bytes(case: AgentCase) -> None:
    """Saving a loaded agent writes the same file."""
    if case.bytes_of(_reloaded(case)) != case.bytes_of(case.trained):
        fail("The files differ.")


def saving_changes_nothing(case: AgentCase) -> None:
    """Saving during training does not change the result."""
    saved = case.make()
    other = case.make()
    for agent in (saved, other):
        agent.learn(iterations=2, progress_bar=False)
        if agent is saved:
            case.bytes_of(agent)
        agent.learn(iterations=2, progress_bar=False)
    if case.bytes_of(saved) != case.bytes_of(other):
        fail("They differ.")


def saving_leaves_one_file(case: AgentCase) -> None:
    """Saving writes one file and nothing else."""
    folder = case.folder / "alone"
    folder.mkdir()
    case.trained.save(folder / "agent.spaql")
    names = sorted(path.name for path in folder.iterdir())
    if names != ["agent.spaql"]:
        fail(f"It left {', '.join(names)}.")


def a_damaged_file_is_refused(case: AgentCase) -> None:
    """A truncated file, or one with a changed byte, raises `ArchiveError`."""
    content = case.bytes_of(case.trained)
    path = case.folder / "damaged.spaql"
    for at in (0, 7, 20, len(content) // 2, len(content) - 1):
        flipped = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        for damaged in (content[:at], flipped):
            path.write_bytes(damaged)
            try:
                load_agent(path)
            except ArchiveError:
                continue
            fail(f"One with a fault at byte {at} of {len(content)} was loaded.")


def training_goes_on_to_the_same_bytes(case: AgentCase) -> None:
    """Interrupted and resumed training ends in the same bytes as training without a break."""
    half = case.make().learn(
        iterations=4, callback=lambda agent, row: row["iteration"] < 2, progress_bar=False
    )
    half.save(case.folder / "half.spaql")
    resumed = load_agent(case.folder / "half.spaql", env=case.problem).learn(iterations=2, progress_bar=False)
    if case.bytes_of(resumed) != case.bytes_of(case.train(4)):
        fail("They differ.")


def a_checkpoint_is_the_agent(case: AgentCase) -> None:
    """A checkpoint is the file that saving at that iteration writes."""
    path = case.folder / "checkpoint.spaql"
    agent = case.make().learn(iterations=2, checkpoint=path, checkpoint_every=2, progress_bar=False)
    if path.read_bytes() != case.bytes_of(agent):
        fail("They differ.")


def a_copy_is_independent(case: AgentCase) -> None:
    """A deep copy equals the agent, and the agent does not change when the copy learns."""
    agent = case.train(2)
    before = case.bytes_of(agent)
    copied = copy.deepcopy(agent)
    if case.bytes_of(copied) != before:
        fail("It differs from the agent.")
    copied.learn(iterations=2, progress_bar=False)
    if case.bytes_of(agent) != before:
        fail("The agent changed when its copy learned.")


def _reloaded(case: AgentCase) -> Agent:
    case.trained.save(case.folder / "saved.spaql")
    return load_agent(case.folder / "saved.spaql", env=case.problem)


SAVING = (
    a_loaded_agent_acts_as_before,
    a_loaded_agent_is_of_its_kind,
    saving_again_gives_the_same_bytes,
    saving_changes_nothing,
    saving_leaves_one_file,
    a_damaged_file_is_refused,
    training_goes_on_to_the_same_bytes,
    a_checkpoint_is_the_agent,
    a_copy_is_independent,
)
