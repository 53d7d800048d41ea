// A motor with a potentiometer on its shaft, at 100 samples a second: the board's side of spaql.Hardware.
#define BENCH_OBSERVATIONS 2
#define BENCH_ACTIONS 1
#define BENCH_PERIOD 10000UL
#define BENCH_WATCHDOG 3
#define BENCH_SAFE {0.0f}
#include "bench.h"

const int POTENTIOMETER = A0, STOP_BUTTON = 2, DIRECTION = 4, MOTOR = 5;
unsigned long next_sample;
float last_angle;

static void bench_write(const char *text) { Serial.write(text); }

float angle() { return (analogRead(POTENTIOMETER) - 512) * (2.6f / 512.0f); }  // rad

void drive(float volts) {
    digitalWrite(DIRECTION, volts < 0 ? HIGH : LOW);
    analogWrite(MOTOR, (int)(constrain(fabs(volts), 0.0f, 6.0f) * (255.0f / 6.0f)));
}

void setup() {
    pinMode(DIRECTION, OUTPUT);
    pinMode(MOTOR, OUTPUT);
    pinMode(STOP_BUTTON, INPUT_PULLUP);
    drive(bench_safe[0]);
    Serial.begin(115200);
    last_angle = angle();
    next_sample = micros();
}

void loop() {
    while (Serial.available()) {
        bench_byte((char)Serial.read());
    }
    if (digitalRead(STOP_BUTTON) == LOW) {
        bench_is_stopped = 1;
        bench_play_safe();
    }
    if ((long)(micros() - next_sample) >= 0) {
        next_sample += BENCH_PERIOD;
        float values[BENCH_OBSERVATIONS];
        values[0] = angle();
        values[1] = (values[0] - last_angle) / (BENCH_PERIOD * 1e-6f);
        last_angle = values[0];
        bench_sample(values);
    }
    drive(bench_action[0]);
}
