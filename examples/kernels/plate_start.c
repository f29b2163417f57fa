#include <quern/kernel_file.h>

/* The beginning of plate.c: a cold plate with a hot edge, a hot pipe and a cold pipe. */
INDEX(y, x);
EXTENT(height, width);
OUTPUT(double, u);
OUTPUT(uint8_t, held);

static double square(double a) { return a * a; }

KERNEL {
    /* lengths relative to the height of the plate */
    const double a = (x + 0.5) / height, b = (y + 0.5) / height;
    const int cold = square(a - 0.55) + square(b - 0.3) < square(0.12);
    const int hot = x == 0 || square(a - 1.1) + square(b - 0.65) < square(0.14);
    u = hot ? 100 : 0;
    held = hot || cold;
}
