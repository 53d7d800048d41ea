"""FMUs made on the spot: a tank in C for FMI 2.0 and 3.0, and one in Python by pythonfmu."""

import inspect
import textwrap
import zipfile
from pathlib import Path

from spaql.export.running import compiled

TANK = {"step_size": 1.0, "horizon": 50, "setpoints": {"level": [0.5, 1.5]}, "start": {"level": [0.2, 1.8]}}
"""Options of a problem of the tank, but for its cost."""
COST = "(level - level_set_point)**2 + 0.01 * valve**2"

_VARIABLES = """
    valve     1 input     continuous -         0   1   -   -
    leak      2 input     continuous -         0   1   -   m3/s
    level     3 output    continuous exact     0   2   0.5 m
    rate      4 output    continuous -         -   -   -   m/s
    area      5 parameter fixed      exact     -   -   1.5 m2
    inside    6 local     continuous -         -   -   -   m
"""

_CORE = r"""
#include <math.h>
#include <stdlib.h>
#include <string.h>
typedef struct { double valve, leak, level, rate, area; void *log; int began; } Tank;

static double *place(Tank *tank, unsigned r)
{
    double *all[] = {&tank->valve, &tank->leak, &tank->level, &tank->rate, &tank->area, &tank->level};
    return r >= 1 && r <= 6 ? all[r - 1] : NULL;
}
static int set_all(Tank *tank, const unsigned r[], size_t n, const double x[])
{
    for (size_t i = 0; i < n; i++) {
        if (!place(tank, r[i]) || (r[i] == 1 && x[i] > 1.0)) return 3;
        *place(tank, r[i]) = x[i];
    }
    return 0;
}
static int get_all(Tank *tank, const unsigned r[], size_t n, double x[])
{
    for (size_t i = 0; i < n; i++) {
        if (!place(tank, r[i])) return 3;
        x[i] = *place(tank, r[i]);
    }
    return 0;
}
static Tank *new_tank(void *log)
{
    Tank *tank = calloc(1, sizeof *tank);
    tank->level = 0.5;
    tank->area = 1.5;
    tank->log = log;
    return tank;
}
static int advance(Tank *tank, double size)
{
    for (int i = 0; i < 10; i++) {
        tank->rate = (0.3 * tank->valve - tank->leak - 0.1 * sqrt(tank->level)) / tank->area;
        tank->level += size / 10 * tank->rate;
        if (tank->level < 0) tank->level = 0;
        if (tank->level > 2) tank->level = 2;
    }
    return tank->leak > 0.9 && tank->level < 0.1;
}
"""

_FMI2 = r"""
typedef void (*Log)(void *, const char *, int, const char *, const char *, ...);
void *fmi2Instantiate(const char *name, int kind, const char *guid, const char *place, void **callbacks,
    int visible, int logging)
{ return new_tank(callbacks[0]); }
void fmi2FreeInstance(void *c) { free(c); }
int fmi2SetupExperiment(void *c, int d, double t, double s, int e, double f)
{ return ((Tank *)c)->began ? 3 : 0; }
int fmi2EnterInitializationMode(void *c) { ((Tank *)c)->began = 1; return ((Tank *)c)->level < 0 ? 3 : 0; }
int fmi2ExitInitializationMode(void *c) { return 0; }
int fmi2Terminate(void *c) { return 0; }
int fmi2SetReal(void *c, const unsigned r[], size_t n, const double x[]) { return set_all(c, r, n, x); }
int fmi2GetReal(void *c, const unsigned r[], size_t n, double x[]) { return get_all(c, r, n, x); }
int fmi2DoStep(void *c, double t, double size, int n)
{
    if (!advance(c, size)) return 0;
    ((Log)((Tank *)c)->log)(NULL, "tank", 3, "error", "the pump is dry at %g m", ((Tank *)c)->level);
    return 3;
}
"""

_FMI3 = r"""
#include <stdbool.h>
typedef void (*Log)(void *, int, const char *, const char *);
void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *place, bool v, bool l,
    bool e, bool early, const unsigned r[], size_t n, void *environment, void *log, void *update)
{ return new_tank(log); }
void fmi3FreeInstance(void *c) { free(c); }
int fmi3EnterInitializationMode(void *c, bool d, double t, double s, bool e, double f)
{ int bad = ((Tank *)c)->began || ((Tank *)c)->level < 0; ((Tank *)c)->began = 1; return bad ? 3 : 0; }
int fmi3ExitInitializationMode(void *c) { return 0; }
int fmi3Terminate(void *c) { return 0; }
int fmi3SetFloat64(void *c, const unsigned r[], size_t n, const double x[], size_t m)
{ return set_all(c, r, n, x); }
int fmi3GetFloat64(void *c, const unsigned r[], size_t n, double x[], size_t m)
{ return get_all(c, r, n, x); }
int fmi3DoStep(void *c, double t, double size, bool n, bool *event, bool *end, bool *early, double *last)
{
    *event = *early = *end = false;
    *last = t + size;
    if (!advance(c, size)) return 0;
    ((Log)((Tank *)c)->log)(NULL, 3, "error", "the pump is dry");
    return 3;
}
"""


def tank_fmu(folder: Path, version: int = 2, *, name: str = "tank") -> Path:
    """Return the path of an FMU of a tank, compiled by the system's compiler."""
    import fmpy
    from fmpy.fmi2 import FMU2Slave
    from fmpy.fmi3 import FMU3Slave

    slave, own = (FMU2Slave, _FMI2) if version == 2 else (FMU3Slave, _FMI3)
    functions = [f for f, _ in inspect.getmembers(slave) if f.startswith(f"fmi{version}")]
    stubs = "".join(
        f"int {f}(void) {{ return 3; }}\n" for f in functions if f" {f}(" not in own and f"*{f}(" not in own
    )
    source = folder / f"{name}.c"
    binary = folder / f"{name}.so"
    source.write_text(_CORE + own + stubs)
    compiled([source], binary, ["-shared", "-fPIC", "-O1", "-lm"])
    platform = fmpy.platform if version == 2 else fmpy.platform_tuple
    path = folder / f"{name}.fmu"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", _description(version, name))
        archive.write(binary, f"binaries/{platform}/{name}{fmpy.sharedLibraryExtension}")
    return path


def _description(version: int, name: str) -> str:
    rows = [line.split() for line in textwrap.dedent(_VARIABLES).strip().splitlines()]
    variables = ""
    for word, reference, causality, variability, initial, low, high, start, unit in rows:
        start = "0" if causality == "input" else start
        own = [
            f'{key}="{x}"'
            for key, x in (("unit", unit), ("min", low), ("max", high), ("start", start))
            if x != "-"
        ]
        common = (
            f'name="{word}" valueReference="{reference}" causality="{causality}" variability="{variability}"'
        )
        common += f' initial="{initial}"' if initial != "-" else ""
        if version == 2:
            variables += f"<ScalarVariable {common}><Real {' '.join(own)}/></ScalarVariable>\n"
        else:
            variables += f"<Float64 {common} {' '.join(own)}/>\n"
    if version == 3:
        variables += (
            '<Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>'
        )
    key, number = ("guid", "2.0") if version == 2 else ("instantiationToken", "3.0")
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="{number}" modelName="{name}" {key}="{{tank}}">
<CoSimulation modelIdentifier="{name}"/>
<UnitDefinitions><Unit name="m"/><Unit name="m2"/><Unit name="m/s"/><Unit name="m3/s"/></UnitDefinitions>
<DefaultExperiment startTime="0" stopTime="40" stepSize="2"/>
<ModelVariables>
{variables}</ModelVariables>
<ModelStructure/>
</fmiModelDescription>
"""


_PYTHON = '''
from pythonfmu import DefaultExperiment, Fmi2Causality, Fmi2Initial, Fmi2Slave, Fmi2Variability, Boolean, Real


class Heater(Fmi2Slave):
    """A room with a heater that is on or off."""

    default_experiment = DefaultExperiment(start_time=0.0, stop_time=20.0, step_size=0.5)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.on, self.temperature, self.outside = False, 15.0, 5.0
        self.register_variable(Boolean("on", causality=Fmi2Causality.input))
        self.register_variable(Real("temperature", causality=Fmi2Causality.output, initial=Fmi2Initial.exact,
                                    variability=Fmi2Variability.continuous))
        self.register_variable(Real("outside", causality=Fmi2Causality.parameter,
                                    variability=Fmi2Variability.fixed))

    def do_step(self, current_time, step_size):
        if self.temperature > 90.0:
            return False
        self.temperature += step_size * (0.1 * (self.outside - self.temperature) + (3.0 if self.on else 0.0))
        return True
'''


def heater_fmu(folder: Path, **options: bool) -> Path:
    """Return the path of an FMU that pythonfmu makes of a class, with a truth value as its input."""
    from pythonfmu import FmuBuilder

    script = folder / "heater.py"
    script.write_text(_PYTHON)
    return Path(FmuBuilder.build_FMU(script, dest=folder, **options))
