#include <quern/kernel_file.h>

/* The beginning of nbody.c: two disks of stars around heavy cores, on a parabolic encounter. The
 * first two bodies are the cores, of mass 1 each. */
INDEX(i);
EXTENT(bodies);
RANDOM;
SCALAR(double, distance, 3.6); /* of the cores at the beginning */
SCALAR(double, closest, 0.9);  /* of the cores on their parabola */
SCALAR(double, stars, 0.1);    /* mass of all stars of a disk */
SCALAR(double, softening, 0.1);
OUTPUT(double, x);
OUTPUT(double, y);
OUTPUT(double, z);
OUTPUT(double, vx);
OUTPUT(double, vy);
OUTPUT(double, vz);
OUTPUT(double, mass);

static const double TURN = 6.283185307179586;

KERNEL {
    const double side = i % 2 == 0 ? 0.5 : -0.5; /* each disk has every second body */
    const double all = 2 * (1 + stars), fast = sqrt(2 * all / distance);
    const double across = sqrt(2 * all * closest) / distance; /* of the relative velocity */
    const double along = sqrt(fast * fast - across * across);
    /* in its disk: the density falls as 1 / r */
    const double r = i < 2 ? 0 : 0.2 + 0.8 * uniform(0), turn = TURN * uniform(1);
    const double v = sqrt(r * r / pow(r * r + softening * softening, 1.5));
    const double a = r * cos(turn), b = r * sin(turn);
    const double va = -v * sin(turn), vb = v * cos(turn);
    const double lean = i % 2 == 0 ? 0.2 : 0.7; /* of the disk, in radians */
    x = side * distance + a;
    y = b * cos(lean);
    z = b * sin(lean);
    vx = -side * along + va;
    vy = side * across + vb * cos(lean);
    vz = vb * sin(lean);
    mass = i < 2 ? 1 : stars / (bodies / 2 - 1);
}
