#include <quern/kernel_file.h>

/* A scene of spheres, drawn by path tracing (Kajiya 1986): each sample of a pixel follows a ray
 * from the camera over its reflections to the sky or to the lamp. */
INDEX(y, x);
EXTENT(height, width);
RANDOM;
SCALAR(int32_t, samples, 64); /* of a pixel */
OUTPUT(uint8_t, red);
OUTPUT(uint8_t, green);
OUTPUT(uint8_t, blue);
SUM(double, light); /* of all pixels and colours, before the limit of 1 */

static const int SPHERES = 8;
static const int BOUNCES = 12; /* a path that is longer brings no light */
static const int DIFFUSE = 0;
static const int MIRROR = 1;
static const int GLASS = 2;
static const int LAMP = 3;

/* The first is the floor. A lamp's colour is its radiance. */
static const int KIND[8] = {0, 2, 1, 0, 0, 1, 2, 3};
static const double X[8] = {0, -0.9, 1.1, 0.1, -2.3, 2.6, 0.55, -4};
static const double Y[8] = {-1000, 0.8, 1, 0.4, 0.9, 0.45, 0.3, 6};
static const double Z[8] = {0, 0.9, -0.6, 1.9, -1.2, 0.9, 2.7, 2};
static const double RADIUS[8] = {1000, 0.8, 1, 0.4, 0.9, 0.45, 0.3, 2.2};
static const double RED[8] = {0.75, 1, 0.95, 0.85, 0.2, 0.95, 1, 5};
static const double GREEN[8] = {0.75, 1, 0.95, 0.3, 0.45, 0.75, 1, 4.6};
static const double BLUE[8] = {0.75, 1, 0.95, 0.2, 0.8, 0.4, 1, 4};

static const double CAMERA_Y = 1.9;
static const double CAMERA_Z = 8;
static const double ZOOM = 0.34;   /* half of the picture's height, one unit away */
static const double PITCH = -0.14; /* how far the camera looks down, one unit away */
static const double NEAR = 1e-6;   /* a ray does not hit the sphere that it leaves */
static const double INFINITE = 1e9;
static const double TURN = 6.283185307179586;

/* How far along the direction d a ray from c, relative to the centre, meets a sphere. */
static double distance(double cx, double cy, double cz, double dx, double dy, double dz, double r) {
    const double b = cx * dx + cy * dy + cz * dz, c = cx * cx + cy * cy + cz * cz - r * r;
    const double inside = b * b - c;
    if (inside < 0)
        return INFINITE;
    const double root = sqrt(inside);
    return -b - root > NEAR ? -b - root : -b + root > NEAR ? -b + root : INFINITE;
}

/* The part of the light that glass reflects, by the formula of Schlick (1994). */
static double reflectance(double cosine) {
    const double a = 1 - cosine;
    return 0.04 + 0.96 * (a * a) * (a * a) * a;
}

static double sky(double from, double dy) { return 0.6 * (from + (1 - from) * (0.5 - 0.5 * dy)); }
static uint8_t tone(double v) { return (uint8_t)(255.99 * sqrt(fmin(v, 1))); }

KERNEL {
    double r = 0, g = 0, b = 0;
    for (int s = 0; s < samples; s++) {
        int64_t k = 32 * (int64_t)s; /* random numbers of this sample */
        double ox = 0, oy = CAMERA_Y, oz = CAMERA_Z;
        double dx = ZOOM * (2 * (x + uniform(k)) - width) / height;
        double dy = ZOOM * (height - 2 * (y + uniform(k | 1))) / height + PITCH;
        double dz = -1;
        double tint_r = 1, tint_g = 1, tint_b = 1;
        for (int bounce = 0; bounce < BOUNCES; bounce++) {
            const double size = sqrt(dx * dx + dy * dy + dz * dz);
            dx /= size;
            dy /= size;
            dz /= size;
            double t = INFINITE;
            int hit = -1;
            for (int i = 0; i < SPHERES; i++) {
                const double far = distance(ox - X[i], oy - Y[i], oz - Z[i], dx, dy, dz, RADIUS[i]);
                hit = far < t ? i : hit;
                t = fmin(far, t);
            }
            if (hit < 0 || KIND[hit] == LAMP) {
                r += tint_r * (hit < 0 ? sky(0.5, dy) : RED[hit]);
                g += tint_g * (hit < 0 ? sky(0.7, dy) : GREEN[hit]);
                b += tint_b * (hit < 0 ? sky(1, dy) : BLUE[hit]);
                break;
            }
            ox += t * dx;
            oy += t * dy;
            oz += t * dz;
            const int dark = hit == 0 && ((int64_t)(floor(ox) + floor(oz)) & 1);
            tint_r *= dark ? 0.25 : RED[hit];
            tint_g *= dark ? 0.3 : GREEN[hit];
            tint_b *= dark ? 0.35 : BLUE[hit];
            /* the normal on the side of the ray */
            double nx = (ox - X[hit]) / RADIUS[hit], ny = (oy - Y[hit]) / RADIUS[hit];
            double nz = (oz - Z[hit]) / RADIUS[hit];
            double cosine = -(nx * dx + ny * dy + nz * dz);
            const int leaves = cosine < 0;
            if (leaves) {
                nx = -nx;
                ny = -ny;
                nz = -nz;
                cosine = -cosine;
            }
            k += 2;
            if (KIND[hit] == DIFFUSE) { /* a point of the unit sphere around the normal's end */
                const double h = 1 - 2 * uniform(k), turn = TURN * uniform(k | 1);
                const double flat = sqrt(1 - h * h);
                dx = nx + flat * cos(turn);
                dy = ny + flat * sin(turn);
                dz = nz + h;
                continue;
            }
            const double ratio = leaves ? 1.5 : 1 / 1.5,
                         sine = ratio * ratio * (1 - cosine * cosine);
            const double beyond = sqrt(fmax(1 - sine, 0)); /* the cosine after the surface */
            const double part = sine >= 1 ? 1 : reflectance(leaves ? beyond : cosine);
            const int mirrors = KIND[hit] == MIRROR || uniform(k) < part;
            const double along = mirrors ? 1 : ratio;
            const double across = mirrors ? 2 * cosine : ratio * cosine - beyond;
            dx = along * dx + across * nx;
            dy = along * dy + across * ny;
            dz = along * dz + across * nz;
        }
    }
    red = tone(r / samples);
    green = tone(g / samples);
    blue = tone(b / samples);
    light = (r + g + b) / samples;
}
