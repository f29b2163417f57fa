#include <quern/kernel_file.h>

/* Bodies that attract each other: one step of leapfrog with the direct sum over all pairs.
 * Positions are those of the time t. Velocities are half a step after, except in the first step.
 * The constant of gravity is 1. */
INDEX(i);
EXTENT(bodies);
ITERATION(step);
WHOLE(double, x, 1);
WHOLE(double, y, 1);
WHOLE(double, z, 1);
WHOLE(double, mass, 1);
INPUT(double, vx);
INPUT(double, vy);
INPUT(double, vz);
SCALAR(double, dt, 0.01);
SCALAR(double, softening, 0.1); /* a length: the force is that of a mass which is spread so far */
OUTPUT(double, x_new);
OUTPUT(double, y_new);
OUTPUT(double, z_new);
OUTPUT(double, vx_new);
OUTPUT(double, vy_new);
OUTPUT(double, vz_new);
SUM(double, kinetic); /* energies and angular momentum at the time t */
SUM(double, potential);
SUM(double, angular);
NEXT(x_new, x);
NEXT(y_new, y);
NEXT(z_new, z);
NEXT(vx_new, vx);
NEXT(vy_new, vy);
NEXT(vz_new, vz);

KERNEL {
    const double xi = x(i), yi = y(i), zi = z(i), here = softening * softening;
    double ax = 0, ay = 0, az = 0, sum = 0;
    for (int64_t j = 0; j < bodies; j++) {
        const double dx = x(j) - xi, dy = y(j) - yi, dz = z(j) - zi;
        const double square = dx * dx + dy * dy + dz * dz + here;
        const double inverse = j == i ? 0 : 1 / sqrt(square);
        const double pull = mass(j) * inverse, force = pull * inverse * inverse;
        ax += force * dx;
        ay += force * dy;
        az += force * dz;
        sum += pull;
    }
    const double before = step == 0 ? 0 : dt / 2, after = dt / 2; /* the halves around t */
    const double ux = vx + before * ax, uy = vy + before * ay, uz = vz + before * az;
    kinetic = mass(i) * (ux * ux + uy * uy + uz * uz) / 2;
    potential = -mass(i) * sum / 2;
    angular = mass(i) * (xi * uy - yi * ux);
    const double wx = ux + after * ax, wy = uy + after * ay, wz = uz + after * az;
    vx_new = wx;
    vy_new = wy;
    vz_new = wz;
    x_new = xi + dt * wx;
    y_new = yi + dt * wy;
    z_new = zi + dt * wz;
}
