/* Answers the observations in the file `inputs` with actions in the file `outputs`, and counts, by the system's
 * timer, how long REPEATS calls take for each; a simulator that counts instructions makes that their number. */
#include <stdint.h>
#include <stdio.h>

#include "controller.h"

#define SYST_CSR (*(volatile uint32_t *)0xE000E010)
#define SYST_RVR (*(volatile uint32_t *)0xE000E014)
#define SYST_CVR (*(volatile uint32_t *)0xE000E018)
#define CPACR (*(volatile uint32_t *)0xE000ED88)

extern void _start(void);
extern uint32_t __stack[];

static void reset(void)
{
#if defined(__ARM_FP)
    CPACR |= 0xFu << 20;
    __asm volatile("dsb\n isb");
#endif
    _start();
}

__attribute__((section(".vectors"), used)) static void *const vectors[] = {__stack, (void *)reset};

int main(void)
{
    FILE *inputs = fopen("inputs", "rb");
    FILE *outputs = fopen("outputs", "wb");
    NUMBER observation[CONTROLLER_OBSERVATIONS];
    NUMBER action[CONTROLLER_ACTIONS];
    SYST_RVR = 0xFFFFFF;
    SYST_CSR = 5;
    while (fread(observation, sizeof observation, 1, inputs) == 1) {
        SYST_CVR = 0;
        for (int i = 0; i < REPEATS; ++i) {
            CALL(observation, action);
            __asm volatile("" ::: "memory");
        }
        uint32_t ticks = 0xFFFFFF - SYST_CVR;
        fwrite(&ticks, sizeof ticks, 1, outputs);
        fwrite(action, sizeof action, 1, outputs);
    }
    fclose(outputs);
    return 0;
}
