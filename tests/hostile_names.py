"""Names that are code, or odd, and controllers that have them."""

import numpy as np
from gymnasium.spaces import Box, Discrete

from spaql.controllers import Controller, Error, Integral, Laws

# fmt: off
ODD = [
    "x\\", "a\\u12", "a\\N{DASH}", "say \"hi\"", "\"\"\"", "'''", "*/", "/*", "*)", "(*", "-->", "<!--",
    "%{", "%}", "#}", "??/", "class", "new", "int", "double", "INFINITY", "asm", "typeof", "bool",
    "true", "this", "und", "None", "lambda", "select", "end", "fn", "let", "ünïcödé [°C]", "温度", "2x",
    "_", "__", "action", "observation", "cut", "best", "score", "sum_0", "x0", "u", "node", "state",
    "{x}", "${x}", "`x`", "$(id)", ";", "--", "a'b", "a%d", "a%s%n", "\\", "\\n", "x" * 300, "NaN",
    "inf", "I", "pi", "e", "main", "errno", "act", "controller", "Controller", "self", "math", "float",
    "map", "__import__", "print", "linux", "unix", "isempty", "ref", "</script>", "nullptr", "template",
    "dt", "int32_t", "```", ">>> 1", "own left", "match", "function", "chosen", "part_1", "own_end", "limit",
    "while */ \\",
]
# fmt: on
"""Printable names on one line."""
CODE = [
    'p"""; raise SystemExit; """',
    "a\n        raise SystemExit\n        #",
    'a\nprocess.getBuiltinModule("fs");//',
    'a\nsystem("true");%',
    'a\nextern "C" { fn f(); } //',
    "p *\\\n/\n#error\n/\\\n*",
    "p *\\\r\n/ int bad; /\\\r\n*",
    "a ??/\n int bad;",
    "a\nEND_VAR IF __import__('os').system('true') > -1 THEN x := 1; (* ",
    "a *) END_VAR END_FUNCTION_BLOCK (* b",
    "p\n1 AS x, --",
    "a\u2028b\u2029c\x85d\x0be\x0cf\rg",
    "\x00\x1b[2J\x1b]0;title\x07",
    "\u202eabc\u2066",
    "\ud800",
    "</script><script>alert(1)</script>",
    "]]></p><p onload='x'>",
    "```\nfn main() {}\n```",
]
"""Names that were code in some export."""


TWO_LEAVES = {
    "feature": [0, -1, -1],
    "threshold": [0.1, 0.0, 0.0],
    "left": [1, -1, -1],
    "right": [2, -1, -1],
    "leaf": [-1, 0, 1],
    "observation_space": Box(-1.0, 1.0, (2,), np.float32),
}


def law_tree(first: str, second: str, action: str) -> Controller:
    return Controller(
        **TWO_LEAVES,
        laws=Laws([[[1.0, -2.0]], [[0.5, 3.0]]], [[0.1], [0.2]]),
        action_space=Box(-1.0, 1.0, (1,), np.float32),
        observations=(first, second),
        actions=(action,),
    )


def choice_tree(first: str, second: str, actions: tuple[str, str]) -> Controller:
    return Controller(
        **TWO_LEAVES,
        laws=[0, 1],
        action_space=Discrete(2),
        observations=(first, second),
        actions=actions,
    )


def with_memory(name: str) -> Controller:
    """Return a controller with memory with a name wherever one stands."""
    features = (Error("error", "other", name), Integral(f"{name.replace('[', '(')} sum", "error", limit=3.0))
    return Controller.of_laws(
        features,
        {name: {"error": 2.0, features[1].name: 0.5}},
        observation_space=Box(-1.0, 1.0, (2,), np.float64),
        action_space=Box(-1.0, 1.0, (1,), np.float64),
        observations=(name, "other"),
        actions=(name,),
        sample_time=0.5,
    )
