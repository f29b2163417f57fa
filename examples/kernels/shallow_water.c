#include <quern/kernel_file.h>

/* A layer of water on a rotating channel (beta plane), which is periodic in x and has walls in the
 * south and the north. One step on the C grid of Arakawa: h stands in the middle of a cell, u on
 * its west face, v on its south face. Thickness goes first, and its new gradient drives the
 * velocities (forward-backward). Vorticity and kinetic energy are those of the scheme of Sadourny
 * (1975) that conserves potential enstrophy, extrapolated in time (Adams-Bashforth). Metres and
 * seconds. */
INDEX(y, x);
EXTENT(height, width);
ITERATION(step);
HALO(double, h, 2, wrap);
HALO(double, u, 2, wrap);
HALO(double, v, 2, wrap);
INPUT(double, du); /* what changed u and v in the last step, without the gradient of h */
INPUT(double, dv);
SCALAR(double, dt, 90);
SCALAR(double, dx, 25000);
SCALAR(double, gravity, 9.81);
SCALAR(double, coriolis, 5e-5); /* in the middle of the channel */
SCALAR(double, beta, 2e-11);    /* its increase a metre to the north */
SCALAR(double, viscosity, 1000);
SCALAR(double, lead, 0.1);
OUTPUT(double, h_new);
OUTPUT(double, u_new);
OUTPUT(double, v_new);
OUTPUT(double, du_new);
OUTPUT(double, dv_new);
SUM(double, water); /* of h: each step has the same number */
SUM(double, energy);
MIN(double, lowest); /* h, and where */
NEXT(h_new, h);
NEXT(u_new, u);
NEXT(v_new, v);
NEXT(du_new, du);
NEXT(dv_new, dv);

/* What flows through a face between two cells in a step, as a thickness. It is a multiple of 2^-30,
 * as h is, so that adding it here and taking it away there are exact. */
static double flow(double courant, double speed, double a, double b) {
    const double part = courant * speed; /* of a cell's width */
    return rint(part * (0.5 * (a + b) - 0.5 * part * (b - a)) * 0x1p30) * 0x1p-30;
}

/* The kinetic energy of a kilogram in a cell, from the velocities on its faces. */
static double motion(double west, double east, double south, double north) {
    return 0.25 * ((west * west + east * east) + (south * south + north * north));
}

KERNEL {
    const double c = dt / dx;
    const int south = y == 0, north = y == height - 1;
    const double hc = h(0, 0), hw = h(0, -1), hs = h(-1, 0);
    const double uc = u(0, 0), vc = v(0, 0), ue = u(0, 1), vn = v(1, 0);
    /* thickness of this cell and of those in the west and in the south of it */
    const double west = flow(c, uc, hw, hc), east = flow(c, ue, hc, h(0, 1));
    const double below = flow(c, vc, hs, hc), above = flow(c, vn, hc, h(1, 0));
    const double west_west = flow(c, u(0, -1), h(0, -2), hw);
    const double west_below = flow(c, v(0, -1), h(-1, -1), hw);
    const double west_above = flow(c, v(1, -1), hw, h(1, -1));
    const double south_west = flow(c, u(-1, 0), h(-1, -1), hs);
    const double south_east = flow(c, u(-1, 1), hs, h(-1, 1));
    const double south_below = flow(c, v(-1, 0), h(-2, 0), hs);
    const double next = hc + ((west - east) + (below - above));
    const double next_west = hw + ((west_west - west) + (west_below - west_above));
    const double next_south = hs + ((south_west - south_east) + (south_below - below));
    /* potential vorticity in three corners; walls have no friction */
    const double f = coriolis + beta * (y - 0.5 * height) * dx;
    const double spin_sw = south ? 0 : (vc - v(0, -1)) - (uc - u(-1, 0));
    const double spin_nw = north ? 0 : (vn - v(1, -1)) - (u(1, 0) - uc);
    const double spin_se = south ? 0 : (v(0, 1) - vc) - (ue - u(-1, 1));
    const double q_sw = (f + spin_sw / dx) / (0.25 * ((hc + hw) + (hs + h(-1, -1))));
    const double q_nw =
        (f + beta * dx + spin_nw / dx) / (0.25 * ((hc + hw) + (h(1, 0) + h(1, -1))));
    const double q_se = (f + spin_se / dx) / (0.25 * ((hc + h(0, 1)) + (hs + h(-1, 1))));
    const double speed = motion(uc, ue, vc, vn);
    const double speed_west = motion(u(0, -1), uc, v(0, -1), v(1, -1));
    const double speed_south = motion(u(-1, 0), u(-1, 1), v(-1, 0), vc);
    const double mix = viscosity * dt / (dx * dx);
    const double u_south = south ? uc : u(-1, 0), u_north = north ? uc : u(1, 0);
    const double gu = 0.125 * dx * (q_sw + q_nw) * ((below + above) + (west_below + west_above)) -
                      c * (speed - speed_west) +
                      mix * ((u(0, -1) + ue) + (u_south + u_north) - 4 * uc);
    const double gv = -0.125 * dx * (q_sw + q_se) * ((west + east) + (south_west + south_east)) -
                      c * (speed - speed_south) +
                      mix * ((v(0, -1) + v(0, 1)) + (v(-1, 0) + vn) - 4 * vc);
    /* the gradient is that of a thickness which is a little later: this damps short gravity waves
     */
    const double late = next + lead * (next - hc);
    const double late_west = next_west + lead * (next_west - hw);
    const double late_south = next_south + lead * (next_south - hs);
    const double more = step == 0 ? 0 : 0.5;
    h_new = next;
    u_new = uc + (gu + more * (gu - du)) - c * gravity * (late - late_west);
    v_new = south ? 0 : vc + (gv + more * (gv - dv)) - c * gravity * (late - late_south);
    du_new = gu;
    dv_new = gv;
    water = next;
    energy = hc * speed + 0.5 * gravity * hc * hc;
    lowest = next;
}
