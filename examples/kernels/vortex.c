#include <quern/kernel_file.h>

/* The beginning of shallow_water.c: a cyclone with the wind V(r) = speed r/R exp((1 - r^2/R^2) /
 * 2), whose centrifugal and Coriolis forces the gradient of h balances. */
INDEX(y, x);
EXTENT(height, width);
SCALAR(double, dx, 25000);
SCALAR(double, gravity, 9.81);
SCALAR(double, coriolis, 5e-5); /* in the middle of the channel */
SCALAR(double, beta, 2e-11);
SCALAR(double, depth, 1000);
SCALAR(double, speed, 30);      /* the strongest wind */
SCALAR(double, radius, 300000); /* where it blows */
SCALAR(double, east, 0.7);      /* its place, as parts of width and height */
SCALAR(double, north, 0.3);
OUTPUT(double, h);
OUTPUT(double, u);
OUTPUT(double, v);
OUTPUT(double, du);
OUTPUT(double, dv);

/* V(r) / r; sqrt(e) is 1.648721270700128 */
static double turning(double a, double b, double peak, double r) {
    return peak / r * 1.648721270700128 * exp(-0.5 * (a * a + b * b) / (r * r));
}

KERNEL {
    const double a = (x - east * width) * dx, b = (y - north * height) * dx; /* the cell's middle */
    const double turn = turning(a, b, speed, radius), r = radius * radius;
    const double f = coriolis + beta * (north - 0.5) * height * dx;
    const double drop = (f * turn * r + 0.5 * turn * turn * r) / gravity;
    h = rint((depth - drop) * 0x1p30) * 0x1p-30; /* as shallow_water.c needs it */
    u = -b * turning(a - 0.5 * dx, b, speed, radius);
    v = y == 0 ? 0 : a * turning(a, b - 0.5 * dx, speed, radius);
    du = 0;
    dv = 0;
}
