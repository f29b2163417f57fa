#include <quern/kernel_file.h>

/* The beginning of plate.c: a cold plate with a hot western edge and two cold pipes. */
INDEX(y, x);
EXTENT(height, width);
OUTPUT(double, u);
OUTPUT(uint8_t, held);

static double square(double a) { return a * a; }

KERNEL {
    /* lengths relative to the height of the plate */
    const double a = (x + 0.5) / height, b = (y + 0.5) / height;
    const int pipe = square(a - 0.55) + square(b - 0.3) < square(0.12) ||
                     square(a - 1.0) + square(b - 0.68) < square(0.16);
    u = x == 0 ? 100 : 0;
    held = x == 0 || pipe;
}
