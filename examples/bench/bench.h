/* The board's side of spaql.Hardware (docs/hardware.md), for an Arduino or anything else with a C or C++
 * compiler. Define BENCH_OBSERVATIONS, BENCH_ACTIONS, BENCH_PERIOD (µs), BENCH_WATCHDOG (samples) and
 * BENCH_SAFE (the safe action, as in {0.0f}) before it is included. Then
 *
 *   bench_byte(c)            for every byte that has come,
 *   bench_sample(values)     once in every BENCH_PERIOD, with the observation of that moment,
 *   bench_action[]           is what the actuators must do at any time,
 *   bench_write(text)        is yours: it writes text to the line. */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BENCH_LONGEST 128 /* characters of a line */

static const float bench_safe[BENCH_ACTIONS] = BENCH_SAFE;
static float bench_action[BENCH_ACTIONS] = BENCH_SAFE;
static char bench_line[BENCH_LONGEST];
static uint8_t bench_length = 0;     /* of the line that comes; BENCH_LONGEST if it is too long */
static uint16_t bench_number = 0;    /* of the last sample */
static uint16_t bench_last = 0;      /* of the last sample whose action was played */
static uint16_t bench_silence = 0;   /* samples without an action */
static uint8_t bench_is_on = 0;      /* samples are sent, and actions played */
static uint8_t bench_is_first = 0;   /* the next sample is the first one */
static uint8_t bench_is_safe = 1;    /* the safe action is played */
static uint8_t bench_is_stopped = 0; /* until it is released */

static void bench_write(const char *text);

/* CRC-16/CCITT-FALSE: polynomial 0x1021, initial value 0xFFFF. */
static uint16_t bench_crc(const char *text, uint8_t length)
{
    uint16_t crc = 0xFFFF;
    for (uint8_t i = 0; i < length; i++) {
        crc ^= (uint16_t)((uint16_t)(uint8_t)text[i] << 8);
        for (uint8_t bit = 0; bit < 8; bit++) {
            crc = (crc & 0x8000) ? (uint16_t)((crc << 1) ^ 0x1021) : (uint16_t)(crc << 1);
        }
    }
    return crc;
}

static char *bench_add(char *to, const char *text)
{
    while (*text) {
        *to++ = *text++;
    }
    return to;
}

static char *bench_add_whole(char *to, uint32_t x)
{
    char digits[10];
    uint8_t n = 0;
    do {
        digits[n++] = (char)('0' + x % 10);
        x /= 10;
    } while (x);
    while (n) {
        *to++ = digits[--n];
    }
    return to;
}

/* Six decimals, since many boards have no printf for floats. */
static char *bench_add_float(char *to, float x)
{
    if (!(x > -4e9f && x < 4e9f)) {
        return bench_add(to, "nan"); /* the computer takes it for a missing observation */
    }
    if (x < 0) {
        *to++ = '-';
        x = -x;
    }
    uint32_t whole = (uint32_t)x, part = (uint32_t)((x - (float)whole) * 1e6f + 0.5f);
    if (part >= 1000000) {
        whole++;
        part -= 1000000;
    }
    to = bench_add_whole(to, whole);
    *to++ = '.';
    for (uint32_t unit = 100000; unit; unit /= 10) {
        *to++ = (char)('0' + part / unit % 10);
    }
    return to;
}

/* Add the checksum to a line, and write it. */
static void bench_send(char *line, char *end)
{
    const uint16_t crc = bench_crc(line, (uint8_t)(end - line));
    *end++ = ' ';
    *end++ = '*';
    for (int8_t shift = 12; shift >= 0; shift = (int8_t)(shift - 4)) {
        *end++ = "0123456789ABCDEF"[(crc >> shift) & 15];
    }
    *end++ = '\n';
    *end = '\0';
    bench_write(line);
}

static void bench_play_safe(void)
{
    memcpy(bench_action, bench_safe, sizeof bench_action);
    bench_is_safe = 1;
}

static void bench_identify(void)
{
    char line[BENCH_LONGEST], *end = bench_add(line, "I 1 ");
    end = bench_add_whole(end, BENCH_OBSERVATIONS);
    end = bench_add_whole(bench_add(end, " "), BENCH_ACTIONS);
    end = bench_add_whole(bench_add(end, " "), BENCH_PERIOD);
    end = bench_add_whole(bench_add(end, " "), BENCH_WATCHDOG);
    for (uint8_t i = 0; i < BENCH_ACTIONS; i++) {
        end = bench_add_float(bench_add(end, " "), bench_safe[i]);
    }
    bench_send(line, end);
}

/* "A number value ...": play it if it is for the last sample. */
static void bench_take_action(const char *text)
{
    char *rest;
    float action[BENCH_ACTIONS];
    const unsigned long number = strtoul(text, &rest, 10);
    for (uint8_t i = 0; i < BENCH_ACTIONS; i++) {
        const char *from = rest;
        action[i] = (float)strtod(from, &rest);
        if (rest == from) {
            return;
        }
    }
    if (bench_is_on && !bench_is_first && !bench_is_stopped && number == bench_number) {
        memcpy(bench_action, action, sizeof action);
        bench_last = bench_number;
        bench_silence = 0;
        bench_is_safe = 0;
    }
}

static void bench_take(char *line, uint8_t length)
{
    char answer[] = "Q *0000\n", *end = strrchr(line, '*'), *rest;
    if (end == NULL || end < line + 2 || end[-1] != ' ' || length != (uint8_t)(end - line + 5) ||
        (uint16_t)strtoul(end + 1, &rest, 16) != bench_crc(line, (uint8_t)(end - 1 - line))) {
        return;
    }
    switch (line[0]) {
    case '?':
        bench_identify();
        break;
    case 'A':
        bench_take_action(line + 1);
        break;
    case 'G':
        if (!bench_is_stopped) {
            bench_play_safe();
            bench_is_on = bench_is_first = 1;
        }
        break;
    case 'X':
    case 'U':
    case 'Q':
        bench_play_safe();
        bench_is_stopped = (line[0] == 'X') || (line[0] == 'Q' && bench_is_stopped);
        bench_is_on = bench_is_on && line[0] == 'X';
        answer[0] = line[0];
        bench_send(answer, answer + 1);
        break;
    default:
        break;
    }
}

static void bench_byte(char c)
{
    if (c == '\n') {
        if (bench_length < BENCH_LONGEST) {
            bench_line[bench_length] = '\0';
            bench_take(bench_line, bench_length);
        }
        bench_length = 0;
    } else if (c != '\r' && bench_length < BENCH_LONGEST - 1) {
        bench_line[bench_length++] = c;
    } else if (c != '\r') {
        bench_length = BENCH_LONGEST;
    }
}

static void bench_sample(const float *values)
{
    char line[BENCH_LONGEST], *end = bench_add(line, "O ");
    if (!bench_is_on) {
        return;
    }
    bench_number = bench_is_first ? 0 : (uint16_t)(bench_number + 1);
    bench_last = bench_is_first ? 65535 : bench_last;
    bench_silence = bench_is_first ? 0 : (uint16_t)(bench_silence + 1);
    bench_is_first = 0;
    end = bench_add_whole(end, bench_number);
    end = bench_add_whole(bench_add(end, " "), bench_last);
    end = bench_add(end, bench_is_stopped ? " X" : bench_is_safe ? " W" : " R");
    for (uint8_t i = 0; i < BENCH_OBSERVATIONS; i++) {
        end = bench_add_float(bench_add(end, " "), values[i]);
    }
    bench_send(line, end);
    if (bench_silence > BENCH_WATCHDOG) {
        bench_silence = BENCH_WATCHDOG; /* so that it never overflows */
        bench_play_safe();
    }
}

#endif
