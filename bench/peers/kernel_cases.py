"""The five kernels of bench/kernel.py: the text for Quern, the same loop for C and OpenCL, and for Numba.

A loop is a function of one item, `item`, in a text that C and OpenCL C share: `G` is `__global` or
nothing. Its parameters are the input arrays, the scalars and the output arrays, in the order of the
case.
"""

from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "kernels"


class Case:
    def __init__(self, name, kernel, item, arrays, scalars, outputs, space, schedule="static", iterations=1,
                 carried=(), tolerance=0.0, numba=None, totals=()):
        self.name, self.kernel, self.item, self.totals = name, kernel, item, totals
        self.arrays, self.scalars, self.outputs, self.space = arrays, scalars, outputs, space
        self.schedule, self.iterations, self.carried = schedule, iterations, carried
        self.tolerance, self.numba = tolerance, numba

    @property
    def items(self):
        return int(np.prod(self.space))


# ---------------------------------------------------------------- mandelbrot

MANDELBROT = r"""
static void item(long i, double left, double size, G int *steps) {
    const long y = i / 1280, x = i % 1280;
    const double cx = left + size * x, cy = size * (y - 960 / 2);
    double a = 0, b = 0;
    int n = 0;
    for (; n < 1000 && a * a + b * b <= 4; n++) {
        const double next = a * a - b * b + cx;
        b = 2 * a * b + cy;
        a = next;
    }
    steps[i] = n;
}
"""


def mandelbrot_numba(numba):
    @numba.njit(parallel=True)
    def run(left, size, steps):
        for i in numba.prange(steps.shape[0]):
            y, x = i // 1280, i % 1280
            cx, cy = left + size * x, size * (y - 480)
            a, b, n = 0.0, 0.0, 0
            while n < 1000 and a * a + b * b <= 4:
                a, b = a * a - b * b + cx, 2 * a * b + cy
                n += 1
            steps[i] = n
    return run


def mandelbrot():
    return Case("mandelbrot", (EXAMPLES / "mandelbrot.c").read_text(), MANDELBROT, {},
                {"left": -2.25, "size": 0.0025}, {"steps": np.int32}, (960, 1280), "dynamic, 1280", numba=mandelbrot_numba)


# ---------------------------------------------------------------- black_scholes

BLACK_SCHOLES = r"""
static double normal(double x) { return 0.5 * (1 + erf(x * 0.7071067811865476)); }
static void item(long i, G const double *price, G const double *strike, G const double *years, double rate, double sigma,
                 G double *call, G double *put) {
    const double spread = sigma * sqrt(years[i]);
    const double up = (log(price[i] / strike[i]) + (rate + sigma * sigma / 2) * years[i]) / spread;
    const double now = strike[i] * exp(-rate * years[i]);
    const double c = price[i] * normal(up) - now * normal(up - spread);
    call[i] = c;
    put[i] = c + now - price[i];
}
"""


def black_scholes_numba(numba):
    from math import erf, exp, log, sqrt

    @numba.njit(parallel=True)
    def run(price, strike, years, rate, sigma, call, put):
        for i in numba.prange(price.shape[0]):
            spread = sigma * sqrt(years[i])
            up = (log(price[i] / strike[i]) + (rate + sigma * sigma / 2) * years[i]) / spread
            now = strike[i] * exp(-rate * years[i])
            c = (price[i] * (0.5 * (1 + erf(up * 0.7071067811865476)))
                 - now * (0.5 * (1 + erf((up - spread) * 0.7071067811865476))))
            call[i] = c
            put[i] = c + now - price[i]
    return run


def black_scholes(count=1_000_000):
    draw = np.random.default_rng(1)
    arrays = {name: draw.uniform(low, high, count)
              for name, low, high in (("price", 5, 30), ("strike", 1, 100), ("years", 0.25, 10))}
    return Case("black_scholes", (EXAMPLES / "black_scholes.c").read_text(), BLACK_SCHOLES, arrays,
                {"rate": 0.02, "sigma": 0.3}, {"call": np.float64, "put": np.float64}, (count,), tolerance=1e-11,
                numba=black_scholes_numba)


# ---------------------------------------------------------------- nbody

NBODY_KERNEL = """INDEX(i); EXTENT(bodies);
WHOLE(double, x, 1); WHOLE(double, y, 1); WHOLE(double, z, 1); WHOLE(double, mass, 1);
OUTPUT(double, ax); OUTPUT(double, ay); OUTPUT(double, az);
KERNEL {
    const double xi = x(i), yi = y(i), zi = z(i);
    double sx = 0, sy = 0, sz = 0;
    for (int64_t j = 0; j < bodies; j++) {
        const double dx = x(j) - xi, dy = y(j) - yi, dz = z(j) - zi;
        const double inverse = 1 / sqrt(dx * dx + dy * dy + dz * dz + 0.01);
        const double force = mass(j) * inverse * inverse * inverse;
        sx += force * dx;
        sy += force * dy;
        sz += force * dz;
    }
    ax = sx; ay = sy; az = sz;
}
"""
NBODY = r"""
static void item(long i, G const double *x, G const double *y, G const double *z, G const double *mass, G double *ax, G double *ay,
                 G double *az) {
    const double xi = x[i], yi = y[i], zi = z[i];
    double sx = 0, sy = 0, sz = 0;
    for (long j = 0; j < 4096; j++) {
        const double dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
        const double inverse = 1 / sqrt(dx * dx + dy * dy + dz * dz + 0.01);
        const double force = mass[j] * inverse * inverse * inverse;
        sx += force * dx;
        sy += force * dy;
        sz += force * dz;
    }
    ax[i] = sx;
    ay[i] = sy;
    az[i] = sz;
}
"""


def nbody_numba(numba):
    from math import sqrt

    @numba.njit(parallel=True)
    def run(x, y, z, mass, ax, ay, az):
        for i in numba.prange(x.shape[0]):
            sx, sy, sz = 0.0, 0.0, 0.0
            for j in range(x.shape[0]):
                dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
                inverse = 1 / sqrt(dx * dx + dy * dy + dz * dz + 0.01)
                force = mass[j] * inverse * inverse * inverse
                sx += force * dx
                sy += force * dy
                sz += force * dz
            ax[i], ay[i], az[i] = sx, sy, sz
    return run


def nbody(count=4096):
    draw = np.random.default_rng(2)
    arrays = {name: draw.standard_normal(count) for name in "xyz"}
    arrays["mass"] = draw.uniform(0.5, 1.5, count) / count
    return Case("nbody", NBODY_KERNEL, NBODY, arrays, {}, dict.fromkeys(("ax", "ay", "az"), np.float64), (count,),
                tolerance=1e-11, numba=nbody_numba)


# ---------------------------------------------------------------- hotspot

# Rodinia's: the temperature of a chip from the power of its parts.
HOTSPOT_KERNEL = """INDEX(y, x);
HALO(float, t, 1, nearest); INPUT(float, power); OUTPUT(float, t_new); NEXT(t_new, t);
SCALAR(float, step, 0.1); SCALAR(float, rx, 0.5); SCALAR(float, ry, 0.6); SCALAR(float, rz, 0.01);
KERNEL {
    const float here = t(0, 0);
    t_new = here + step * (power + (t(1, 0) + t(-1, 0) - 2 * here) * ry + (t(0, 1) + t(0, -1) - 2 * here) * rx
                           + (80 - here) * rz);
}
"""
HOTSPOT = r"""
static void item(long i, G const float *t, G const float *power, float step, float rx, float ry, float rz, G float *t_new) {
    const long y = i / 1024, x = i % 1024;
    const float here = t[i], south = t[y < 1023 ? i + 1024 : i], north = t[y > 0 ? i - 1024 : i];
    const float east = t[x < 1023 ? i + 1 : i], west = t[x > 0 ? i - 1 : i];
    t_new[i] = here + step * (power[i] + (south + north - 2 * here) * ry + (east + west - 2 * here) * rx + (80 - here) * rz);
}
"""


def hotspot_numba(numba):
    @numba.njit(parallel=True)
    def run(t, power, step, rx, ry, rz, t_new):
        t, p, o = t.reshape(1024, 1024), power.reshape(1024, 1024), t_new.reshape(1024, 1024)
        two, eighty = numba.float32(2), numba.float32(80)
        for y in numba.prange(1024):
            south, north = min(y + 1, 1023), max(y - 1, 0)
            for x in range(1024):
                here = t[y, x]
                east, west = t[y, min(x + 1, 1023)], t[y, max(x - 1, 0)]
                o[y, x] = here + step * (p[y, x] + (t[south, x] + t[north, x] - two * here) * ry
                                         + (east + west - two * here) * rx + (eighty - here) * rz)
    return run


def hotspot():
    draw = np.random.default_rng(3)
    arrays = {"t": draw.uniform(70, 90, (1024, 1024)).astype("f4"), "power": draw.uniform(0, 1, (1024, 1024)).astype("f4")}
    scalars = {name: np.float32(value) for name, value in (("step", 0.1), ("rx", 0.5), ("ry", 0.6), ("rz", 0.01))}
    return Case("hotspot", HOTSPOT_KERNEL, HOTSPOT, arrays, scalars, {"t_new": np.float32}, (1024, 1024), iterations=40,
                carried=(("t_new", "t"),), tolerance=1e-4, numba=hotspot_numba)


# ---------------------------------------------------------------- smith_waterman

SMITH_WATERMAN = r"""
#define MAX_(a, b) ((a) > (b) ? (a) : (b))
static void item(long s, G const long *start, G const long *size, G const uchar *letters, G const uchar *query, G const int *matrix,
                 int open, int extend, G int *score) {
    const int columns = 256;
    int letter[256], h[256], before[256], e[256], t[256];
    int most = 0;
    for (int j = 0; j < columns; j++) {
        letter[j] = query[j];
        h[j] = before[j] = e[j] = t[j] = 0;
    }
    for (long i = start[s]; i < start[s] + size[s]; i++) {
        const int row = 24 * letters[i];
        for (int j = 0; j < columns; j++) {
            e[j] = MAX_(e[j], h[j] - open) - extend;
            t[j] = MAX_(MAX_(0, before[j] + matrix[row + letter[j]]), e[j]);
            most = MAX_(most, t[j]);
        }
        int f = 0, last = 0;
        for (int j = 0; j < columns; j++) {
            before[j] = last;
            last = MAX_(t[j], f);
            h[j] = last;
            f = MAX_(f, t[j] - open) - extend;
        }
    }
    score[s] = most;
}
"""


def smith_waterman_numba(numba):
    @numba.njit(parallel=True)
    def run(start, size, letters, query, matrix, open_, extend, score):
        for s in numba.prange(start.shape[0]):
            columns = query.shape[0]
            h, before = np.zeros(columns, np.int32), np.zeros(columns, np.int32)
            e, t = np.zeros(columns, np.int32), np.zeros(columns, np.int32)
            most = np.int32(0)
            for i in range(start[s], start[s] + size[s]):
                row = 24 * letters[i]
                for j in range(columns):
                    e[j] = max(e[j], h[j] - open_) - extend
                    t[j] = max(max(np.int32(0), before[j] + matrix[row + query[j]]), e[j])
                    most = max(most, t[j])
                f, last = np.int32(0), np.int32(0)
                for j in range(columns):
                    before[j] = last
                    last = max(t[j], f)
                    h[j] = last
                    f = max(f, t[j] - open_) - extend
            score[s] = most
    return run


def smith_waterman(count=600):
    draw = np.random.default_rng(4)
    text = (EXAMPLES / "smith_waterman.c").read_text()
    table = text[text.index("BLOSUM62[576] = {"):]
    table = table[table.index("\n"):table.index("};")]
    matrix = np.array([int(word) for word in table.replace(",", " ").split()
                       if word.lstrip("-").isdigit()], np.int32)
    assert matrix.shape == (576,)
    size = draw.integers(100, 400, count).astype(np.int64)
    arrays = {"start": np.concatenate([[0], np.cumsum(size)[:-1]]), "size": size,
              "letters": draw.integers(0, 20, size.sum()).astype(np.uint8),
              "query": draw.integers(0, 20, 256).astype(np.uint8), "matrix": matrix}
    return Case("smith_waterman", text, SMITH_WATERMAN, arrays, {"open": np.int32(11), "extend": np.int32(1)},
                {"score": np.int32}, (count,), "dynamic, 8", numba=smith_waterman_numba,
                totals=("histogram",))


CASES = {case.__name__: case for case in (mandelbrot, black_scholes, nbody, hotspot, smith_waterman)}
