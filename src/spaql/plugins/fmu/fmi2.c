#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

#define FMI2_OK 0
#define FMI2_ERROR 3
#define SLACK (1e-6 * PERIOD)

typedef void (*logger)(void *, const char *, int, const char *, const char *, ...);

/* fmi2CallbackFunctions */
typedef struct {
    logger log;
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(void *, int);
    void *environment;
} callbacks;

typedef struct {
    logger log;
    void *environment;
    double observation[INPUTS];
    double action[OUTPUTS];
#ifdef PERIOD
    NAMED(state) state;
    double first; /* time of the first sample */
    double samples; /* taken so far */
#endif
} instance;

static void begin(instance *self)
{
    static const double first[] = {BEGIN};
    size_t i;
    for (i = 0; i < (size_t)INPUTS; i++) {
        self->observation[i] = 0.0;
    }
    memcpy(self->action, first, sizeof self->action);
#ifdef PERIOD
    NAMED(reset)(&self->state);
    self->first = 0.0;
    self->samples = 0.0;
#endif
}

EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char *fmi2GetVersion(void) { return "2.0"; }
EXPORT int fmi2SetDebugLogging(void *c, int on, size_t n, const char *const categories[])
{
    (void)c; (void)on; (void)n; (void)categories;
    return FMI2_OK;
}

EXPORT void *fmi2Instantiate(const char *name, int kind, const char *guid, const char *resources,
                             const callbacks *given, int visible, int logging)
{
    instance *self = NULL;
    (void)name; (void)resources; (void)visible; (void)logging;
    if (kind == 1 && guid != NULL && strcmp(guid, GUID) == 0) {
        self = (instance *)calloc(1, sizeof *self);
    }
    if (self != NULL) {
        self->log = given != NULL ? given->log : (logger)0;
        self->environment = given != NULL ? given->environment : NULL;
        begin(self);
    }
    return self;
}

EXPORT void fmi2FreeInstance(void *c) { free(c); }
EXPORT int fmi2SetupExperiment(void *c, int defined, double tolerance, double start, int ends, double stop)
{
    (void)c; (void)defined; (void)tolerance; (void)start; (void)ends; (void)stop;
    return FMI2_OK;
}
EXPORT int fmi2EnterInitializationMode(void *c) { (void)c; return FMI2_OK; }
EXPORT int fmi2ExitInitializationMode(void *c) { (void)c; return FMI2_OK; }
EXPORT int fmi2Terminate(void *c) { (void)c; return FMI2_OK; }
EXPORT int fmi2Reset(void *c) { begin((instance *)c); return FMI2_OK; }

EXPORT int fmi2GetReal(void *c, const unsigned vr[], size_t n, double value[])
{
    const instance *self = (const instance *)c;
#ifdef PERIOD
    const double hidden[] = {HIDDEN};
#endif
    size_t i;
    for (i = 0; i < n; i++) {
        if (vr[i] < INPUTS) {
            value[i] = self->observation[vr[i]];
        } else if (vr[i] < INPUTS + OUTPUTS) {
            if (WHOLE) {
                return FMI2_ERROR;
            }
            value[i] = self->action[vr[i] - INPUTS];
#ifdef PERIOD
        } else if (vr[i] < INPUTS + OUTPUTS + sizeof hidden / sizeof hidden[0]) {
            value[i] = hidden[vr[i] - INPUTS - OUTPUTS];
#endif
        } else {
            return FMI2_ERROR;
        }
    }
    return FMI2_OK;
}

EXPORT int fmi2SetReal(void *c, const unsigned vr[], size_t n, const double value[])
{
    instance *self = (instance *)c;
    size_t i;
    for (i = 0; i < n; i++) {
        if (vr[i] >= INPUTS) {
            return FMI2_ERROR;
        }
        self->observation[vr[i]] = value[i];
    }
    return FMI2_OK;
}

EXPORT int fmi2GetInteger(void *c, const unsigned vr[], size_t n, int value[])
{
    const instance *self = (const instance *)c;
    size_t i;
    for (i = 0; i < n; i++) {
        if (!WHOLE || vr[i] < INPUTS || vr[i] >= INPUTS + OUTPUTS) {
            return FMI2_ERROR;
        }
        value[i] = (int)self->action[vr[i] - INPUTS];
    }
    return FMI2_OK;
}

EXPORT int fmi2DoStep(void *c, double time, double size, int keep)
{
    instance *self = (instance *)c;
    (void)keep;
#ifdef PERIOD
    if (size > PERIOD + SLACK) {
        if (self->log != 0) {
            self->log(self->environment, NAME, FMI2_ERROR, "error",
                      "a step of %g s is longer than the sample time of %g s", size, PERIOD);
        }
        return FMI2_ERROR;
    }
    if (self->samples == 0.0) {
        self->first = time;
    }
    /* Between two samples the action is held. */
    if (time >= self->first + (self->samples * PERIOD) - SLACK) {
        NAMED(act)(&self->state, self->observation, self->action);
        self->samples += 1.0;
    }
#else
    (void)time; (void)size;
    NAMED(act)(self->observation, self->action);
#endif
    return FMI2_OK;
}

EXPORT int fmi2GetFMUstate(void *c, void **state)
{
    if (*state == NULL) {
        *state = malloc(sizeof(instance));
    }
    if (*state == NULL) {
        return FMI2_ERROR;
    }
    memcpy(*state, c, sizeof(instance));
    return FMI2_OK;
}
EXPORT int fmi2SetFMUstate(void *c, void *state)
{
    memcpy(c, state, sizeof(instance));
    return FMI2_OK;
}
EXPORT int fmi2FreeFMUstate(void *c, void **state)
{
    (void)c;
    free(*state);
    *state = NULL;
    return FMI2_OK;
}

/* What a controller does not have. */
EXPORT int fmi2GetBoolean(void) { return FMI2_ERROR; }
EXPORT int fmi2GetString(void) { return FMI2_ERROR; }
EXPORT int fmi2SetInteger(void) { return FMI2_ERROR; }
EXPORT int fmi2SetBoolean(void) { return FMI2_ERROR; }
EXPORT int fmi2SetString(void) { return FMI2_ERROR; }
EXPORT int fmi2SerializedFMUstateSize(void) { return FMI2_ERROR; }
EXPORT int fmi2SerializeFMUstate(void) { return FMI2_ERROR; }
EXPORT int fmi2DeSerializeFMUstate(void) { return FMI2_ERROR; }
EXPORT int fmi2GetDirectionalDerivative(void) { return FMI2_ERROR; }
EXPORT int fmi2SetRealInputDerivatives(void) { return FMI2_ERROR; }
EXPORT int fmi2GetRealOutputDerivatives(void) { return FMI2_ERROR; }
EXPORT int fmi2CancelStep(void) { return FMI2_ERROR; }
EXPORT int fmi2GetStatus(void) { return FMI2_ERROR; }
EXPORT int fmi2GetRealStatus(void) { return FMI2_ERROR; }
EXPORT int fmi2GetIntegerStatus(void) { return FMI2_ERROR; }
EXPORT int fmi2GetBooleanStatus(void) { return FMI2_ERROR; }
EXPORT int fmi2GetStringStatus(void) { return FMI2_ERROR; }
