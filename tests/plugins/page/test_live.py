"""A training that is watched in a browser while it goes on."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

import spaql
from browser import browser
from spaql.cli import main
from spaql.plugins.page.live import LivePage


def fetched(address: str, **headers: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def learned(callback: object = None) -> spaql.SPAQLTS:
    agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=2, seed=1)
    return agent.learn(iterations=3, callback=callback)


def test_the_page_is_that_of_the_controller_so_far() -> None:
    versions = []
    pages = []

    with LivePage() as live:

        def look(agent: spaql.Agent, row: dict[str, float]) -> None:
            live.show(agent)
            versions.append(json.loads(fetched(live.address + "version")))
            pages.append(fetched(live.address + "page?version=1"))

        agent = learned([live, look])
    assert versions[-1]["version"] >= 1
    assert versions[-1]["status"] == f"{agent.training_steps:,} training steps"
    assert 'id="play-data"' in pages[-1]
    with pytest.raises(urllib.error.URLError):
        fetched(live.address)


def test_watching_changes_nothing_in_what_is_learned(tmp_path: Path) -> None:
    with LivePage() as live:
        watched = learned(lambda agent, row: live.show(agent))
    watched.save(tmp_path / "watched.spaql")
    learned().save(tmp_path / "alone.spaql")
    assert (tmp_path / "watched.spaql").read_bytes() == (tmp_path / "alone.spaql").read_bytes()


def test_it_is_on_this_machine_only_and_answers_no_other_name() -> None:
    with LivePage() as live:
        port = int(live.address.rstrip("/").rpartition(":")[2])
        for address, headers, code in (
            (live.address, {"Host": "evil.example"}, 403),
            (live.address + "etc/passwd", {}, 404),
        ):
            with pytest.raises(urllib.error.HTTPError) as refused:
                fetched(address, **headers)
            assert refused.value.code == code
            refused.value.close()
        others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
        for other in others - {"127.0.0.1"}:
            with pytest.raises(OSError, match=r"."):
                socket.create_connection((other, port), timeout=1).close()


def test_plantree_has_no_controller_within_its_budget() -> None:
    with LivePage() as live:
        agent = spaql.PlanTree("CartPole-v1", seed=0, effort=0.01)
        seen: list[str] = []
        agent.learn(300, callback=lambda agent, row: (live.show(agent), seen.append(live._page))[0])
        live.show(agent)
        assert "There is no controller yet" in seen[0]
        assert 'id="play-data"' in live._page


def test_the_command_prints_the_address_and_refuses_tries(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    words = [
        "train",
        "cartpole200",
        "--algo",
        "spaql",
        "--iterations",
        "2",
        "--seed",
        "1",
        "--out",
        out,
        "--live",
    ]
    done = CliRunner().invoke(main, [*words, "--quiet"])
    assert done.exit_code == 0, done.output
    assert "The controller so far is shown at http://127.0.0.1:" in done.stderr
    refused = CliRunner().invoke(main, [*words[:-3], "--live", "--tries", "2", "--out", f"{out}2"])
    assert refused.exit_code == 2
    assert "--live is for one training" in refused.stderr


@pytest.mark.slow
def test_a_browser_follows_the_training(tmp_path: Path) -> None:
    words = [
        "train",
        "CartPole-v1",
        "--algo",
        "treesearch",
        "--total-timesteps",
        "100000000",
        "--live",
        "--quiet",
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "spaql", *words, "--out", str(tmp_path / "run")],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stderr is not None
            address = next(line.split()[-1] for line in process.stderr if "http://127.0.0.1:" in line)
            with browser() as page:
                page.send("Page.navigate", url=address)
                there = (
                    "!!document.querySelector('iframe')?.contentDocument?.querySelector('#tree svg, #tree *')"
                )
                end = time.monotonic() + 90
                while not page.run(there):
                    assert time.monotonic() < end, page.run("document.body.innerText")
                    time.sleep(0.3)
                assert "training steps" in page.run("document.getElementById('status').textContent")
                process.kill()
                while page.run("document.getElementById('status').textContent") != "the training has ended":
                    assert time.monotonic() < end
                    time.sleep(0.3)
                assert page.run(there)  # what was shown last stays
        finally:
            process.kill()
