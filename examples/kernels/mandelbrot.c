#include <quern/kernel_file.h>
INDEX(y, x);
EXTENT(height, width);
SCALAR(double, left, -2.0);
SCALAR(double, size, 0.005);
OUTPUT(int32_t, steps);
COUNT(inside);
KERNEL {
    const double cx = left + size * x, cy = size * (y - height / 2);
    double a = 0, b = 0;
    int n = 0;
    for (; n < 1000 && a * a + b * b <= 4; n++) {
        const double next = a * a - b * b + cx;
        b = 2 * a * b + cy;
        a = next;
    }
    steps = n;
    inside = n == 1000;
}
