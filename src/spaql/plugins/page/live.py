"""A training as it goes, as a page in a browser on this machine."""

from __future__ import annotations

import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from spaql.agents import Agent, Design
from spaql.controllers import controller_of
from spaql.errors import SettingError
from spaql.languages import in_html
from spaql.plugins.page.card import policy_card

_HERE = "127.0.0.1"
_SHARE = 5
"""At most one part in so many of the time is spent on pages."""
_EPISODES = 50
"""Fresh episodes of each page."""
_SEEN = 2.0
"""Seconds for which a browser that asks is given the last page."""
_FRAME = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Training</title>
<style>html, body { height: 100%; margin: 0; } body { display: flex; flex-direction: column; }
p { margin: 0; padding: .4em 1em; font: 14px system-ui, sans-serif; background: Canvas; color: CanvasText; }
iframe { flex: 1; border: 0; } :root { color-scheme: light dark; }</style></head><body>
<p><span id="status" aria-live="polite">connecting</span>
<label><input type="checkbox" id="follow" checked> show every new controller</label></p>
<iframe title="The controller so far"></iframe><script>
let shown = -1;
const status = document.getElementById('status'), follow = document.getElementById('follow');
async function look() {
  try {
    const now = await (await fetch('version')).json();
    status.textContent = now.status;
    if (now.version !== shown && (follow.checked || shown < 0)) {
      shown = now.version;
      document.querySelector('iframe').src = 'page?version=' + shown;
    }
  } catch (error) { status.textContent = 'the training has ended'; }
  setTimeout(look, 500);
}
look();
</script></body></html>
"""


class LivePage:
    """A callback of `learn` that serves the page of the controller so far, on 127.0.0.1 only.

    The episodes of its pages are played beside the training: they change nothing in it, and are not counted
    as its steps. Use it in a `with` statement.

    Examples
    --------
    >>> import spaql
    >>> with LivePage() as live:
    ...     agent = spaql.SPAQL("cartpole200", seed=0, rollouts=2).learn(iterations=2, callback=live)
    ...     live.address.startswith("http://127.0.0.1:")
    True
    """

    def __init__(self) -> None:
        self._page = _note("Nothing is learned yet.")
        self._version = 0
        self._status = "nothing is learned yet"
        self._shown: Any = None
        self._next = self._asked = 0.0
        self._server = ThreadingHTTPServer((_HERE, 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.address = f"http://{_HERE}:{self._server.server_port}/"
        """Where the page is."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if time.monotonic() - self._asked < _SEEN:  # a browser looks, and is to see the last page
            time.sleep(_SEEN)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __call__(self, agent: Agent, row: dict[str, float]) -> None:
        """Make the page anew, unless the last one was made just now."""
        self._status = f"{int(row['training_steps']):,} training steps"
        if time.monotonic() >= self._next:
            self.show(agent)

    def show(self, agent: Agent) -> None:
        """Make the page of what was learned so far, if that is another controller than the last one."""
        begun = time.monotonic()
        try:
            policy = agent.policy
            is_new = policy is not self._shown
            if is_new:
                self._page = self._made(agent)
                self._shown = policy
        except SettingError as error:  # PlanTree has none within its budget
            is_new = True
            page = _note(f"There is no controller yet. {error}")
            is_new = page != self._page
            self._page = page
        self._version += is_new
        took = time.monotonic() - begun
        self._next = begun + _SHARE * max(took, 0.2)

    def _made(self, agent: Agent) -> str:
        policy = agent.policy
        if policy.time_variant:
            return _note("It has another policy at every time step, which no page shows.")
        tree = controller_of(policy)
        made = {"algorithm": agent.learner_type.name, "training steps": agent.training_steps}
        return policy_card(None, Design(tree, agent.problem, made), episodes=_EPISODES)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        live = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                # Another name in the request is that of another site, which was made to point here.
                if self.headers.get("Host", "") != f"{_HERE}:{live._server.server_port}":
                    self.send_error(HTTPStatus.FORBIDDEN)
                    return
                live._answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Print nothing into the progress of the training."""

        return Handler

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        self._asked = time.monotonic()
        path = request.path.partition("?")[0]
        known = {
            "/": ("text/html", _FRAME),
            "/page": ("text/html", self._page),
            "/version": ("application/json", f'{{"version": {self._version}, "status": "{self._status}"}}'),
        }
        if path not in known:
            request.send_error(HTTPStatus.NOT_FOUND)
            return
        kind, text = known[path]
        body = text.encode()
        request.send_response(HTTPStatus.OK)
        request.send_header("Content-Type", f"{kind}; charset=utf-8")
        request.send_header("Content-Length", str(len(body)))
        request.send_header("Cache-Control", "no-store")
        request.end_headers()
        request.wfile.write(body)


def _note(message: str) -> str:
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Training</title>'
    return f"{head}<p>{in_html(message)}</p></html>"
