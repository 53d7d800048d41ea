/* A simulated motor behind bench.h, on standard input and output: the C side of the tests of spaql.Hardware.
 * cc -std=c99 -O2 -o motor motor.c -lm */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <poll.h>

#define BENCH_OBSERVATIONS 2
#define BENCH_ACTIONS 1
#define BENCH_PERIOD 10000UL
#define BENCH_WATCHDOG 3
#define BENCH_SAFE {0.0f}
#include "bench.h"

static void bench_write(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

int main(void)
{
    float state[BENCH_OBSERVATIONS] = {0.5f, 0.0f};
    long long next = now();
    for (;;) {
        struct pollfd line = {0, POLLIN, 0};
        const long long left = next - now();
        if (left > 0 && poll(&line, 1, (int)(left / 1000)) > 0) {
            char bytes[256];
            const ssize_t n = read(0, bytes, sizeof bytes);
            if (n <= 0) {
                return 0;
            }
            for (ssize_t i = 0; i < n; i++) {
                bench_byte(bytes[i]);
            }
        }
        if (now() >= next) {
            next += (long long)BENCH_PERIOD;
            state[1] += 0.01f * (2.5f * bench_action[0] - state[1]) / 0.1f;
            state[0] += 0.01f * state[1];
            bench_sample(state);
        }
    }
}
