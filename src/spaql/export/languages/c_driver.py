"""The C program that plays samples with exported C."""

from __future__ import annotations

from spaql.export.language import Source
from spaql.export.languages.c_arithmetic import TYPES
from spaql.export.played import PLAYED, SAMPLES


def driver(source: Source) -> str:
    """Return a C program that plays the samples in a file."""
    name = source.name
    kind = TYPES[source.number]
    state = source.program.state
    n, m, _ = source.widths
    width = 1 + n + (2 * (1 + m) if source.track is not None else 0)
    dump = "".join(
        f"        out[{m + i}] = (double)state.{variable.name};\n" for i, variable in enumerate(state)
    )
    reset = f"if (row[0] > 0.0) {{ {name}_reset(&state); }}" if state else ""
    call = f"{name}_act({'&state, ' if state else ''}given, action);"
    if source.track is not None:
        call = f"""if (row[{2 + n + m}] > 0.0) {{
            {name}_track(&state, given + {2 + n + m});
        }}
        if (row[{1 + n}] > 0.0) {{
            {name}_manual(&state, given, given + {1 + n}, action);
        }} else {{
            {name}_act(&state, given, action);
        }}"""
    return f"""#include <stdio.h>
#include "{name}.h"

int main(void)
{{
    double row[{width}], out[{source.played}];
    {kind} given[{width}], action[{m}];
    FILE *samples = fopen("{SAMPLES}", "rb");
    FILE *played = fopen("{PLAYED}", "wb");
    {f"{name}_state state;" if state else ""}
    if (samples == NULL || played == NULL) {{
        return 1;
    }}
    {f"{name}_reset(&state);" if state else ""}
    while (fread(row, sizeof row, 1, samples) == 1) {{
        for (int j = 1; j < {width}; j++) {{
            given[j - 1] = ({kind})row[j];
        }}
        {reset}
        {call}
        for (int k = 0; k < {m}; k++) {{
            out[k] = (double)action[k];
        }}
{dump}        if (fwrite(out, sizeof out, 1, played) != 1) {{
            return 1;
        }}
    }}
    return fclose(played);
}}
"""
