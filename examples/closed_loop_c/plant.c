/* Gymnasium's Pendulum-v1 in C, in the order of operations of spaql's compiled version, under an exported
 * controller. Prints the state after every step, to the last bit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "controller.h"

static double within(double x, double low, double high)
{
    return (x < low) ? low : ((x > high) ? high : x);
}

int main(int argc, char *argv[])
{
    if (argc != 4) {
        fputs("usage: plant STEPS ANGLE SPEED\n", stderr);
        return 2;
    }
    const long steps = strtol(argv[1], NULL, 10);
    double angle = strtod(argv[2], NULL);
    double speed = strtod(argv[3], NULL);
    for (long step = 0; step < steps; ++step) {
        const double observation[CONTROLLER_OBSERVATIONS] = {cos(angle), sin(angle), speed};
        double action[CONTROLLER_ACTIONS];
        controller_act(observation, action);
        /* Gymnasium has the torque in single precision. */
        const float torque = (float)within(action[0], -2.0, 2.0);
        speed = speed + (15.0 * sin(angle) + (double)(3.0f * torque)) * 0.05;
        speed = within(speed, -8.0, 8.0);
        angle = angle + speed * 0.05;
        printf("%a %a %a\n", angle, speed, action[0]);
    }
    return 0;
}
