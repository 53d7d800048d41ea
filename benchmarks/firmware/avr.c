/* Asks the controller about every observation in vectors.h, and prints the cycles and the action of each. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/pgmspace.h>
#include <avr/sleep.h>
#include <string.h>

#include "controller.h"
#include "vectors.h"

static void print(char letter)
{
    while (!(UCSR0A & (1 << UDRE0))) {
    }
    UDR0 = (uint8_t)letter;
}

static void print_hex(const void *bytes, uint8_t n)
{
    const uint8_t *byte = bytes;
    while (n--) {
        print("0123456789abcdef"[byte[n] >> 4]);
        print("0123456789abcdef"[byte[n] & 15]);
    }
    print(' ');
}

int main(void)
{
    UCSR0B = 1 << TXEN0;
    TCCR1B = 1 << CS10;
    for (uint16_t i = 0; i < VECTORS; ++i) {
        NUMBER observation[CONTROLLER_OBSERVATIONS];
        NUMBER action[CONTROLLER_ACTIONS];
        memcpy_P(observation, &vectors[i], sizeof observation);
        TCNT1 = 0;
        TIFR1 = 1 << TOV1;
        uint16_t begin = TCNT1;
        asm volatile("" ::: "memory");
        CALL(observation, action);
        asm volatile("" ::: "memory");
        uint16_t cycles = TCNT1 - begin;
        if (TIFR1 & (1 << TOV1)) { /* more than the timer can count */
            cycles = 0xffff;
        }
        print_hex(&cycles, 2);
        for (uint8_t j = 0; j < CONTROLLER_ACTIONS; ++j) {
            print_hex(&action[j], sizeof action[j]);
        }
        print('\n');
    }
    cli();
    sleep_mode();
}
