"""The simulations of examples/kernels: bodies, a plate and shallow water, compared with NumPy bit for bit
and with what physics says of them."""

import math
import os
import shutil

import numpy
import pytest

from builds import ROOT
from test_kernel import cache, quick, results, run  # noqa: F401: fixtures

KERNELS = ROOT / "examples" / "kernels"
SPACE, FLUID = "x y z vx vy vz".split(), "h u v du dv".split()


def text_of(name):
    return (KERNELS / f"{name}.c").read_text()


def files(option, names, ending=""):
    return [word for n in names for word in (option, f"{n}{ending}={n}{ending}.npy")]


def load(folder, names, ending=""):
    return [numpy.load(folder / f"{n}{ending}.npy") for n in names]


def begin(run, text, shape, names, *words):  # noqa: F811
    run(text, "--quiet", "--shape", shape, *files("--out", names), *words)


# ---------------------------------------------------------------- bodies

GALAXIES = [*SPACE, "mass"]


def bodies_step(state, mass, dt, softening, step):
    """One step as nbody.c computes it, item by item: the bodies j are added one after another."""
    place, speed = state[:3], state[3:]
    force, pulls = numpy.zeros((3, len(mass))), numpy.zeros(len(mass))
    for j in range(len(mass)):
        d = place[:, j:j + 1] - place
        square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + softening * softening
        inverse = numpy.where(numpy.arange(len(mass)) == j, 0, 1 / numpy.sqrt(square))
        pull = mass[j] * inverse
        force += pull * inverse * inverse * d
        pulls += pull
    now = speed + (dt / 2 if step else 0) * force
    kinetic = mass * (now[0] * now[0] + now[1] * now[1] + now[2] * now[2]) / 2
    angular = mass * (place[0] * now[1] - place[1] * now[0])
    later = now + dt / 2 * force
    return numpy.vstack([place + dt * later, later]), [kinetic, -mass * pulls / 2, angular]


def test_bodies(run, tmp_path):  # noqa: F811
    """The encounter of two small galaxies: all bits, and energy and angular momentum."""
    begin(run, text_of("galaxies"), "60", GALAXIES)
    state, mass = numpy.array(load(tmp_path, SPACE)), numpy.load(tmp_path / "mass.npy")
    assert math.isclose(math.fsum(mass), 2.2) and abs(mass @ state.T[:, 3:5]).max() < 0.05
    sums = ["kinetic", "potential", "angular"]
    run(text_of("nbody"), "--quiet", *files("--in", GALAXIES), *files("--out", SPACE, "_new"),
        *files("--series", sums), "--iterations", 30)
    want = []
    for step in range(30):
        state, values = bodies_step(state, mass, 0.01, 0.1, step)
        want.append([math.fsum(v) for v in values])
    assert numpy.array(load(tmp_path, SPACE, "_new")).tobytes() == state.tobytes()
    series = numpy.array(load(tmp_path, sums))
    assert series.T.tolist() == want
    energy = series[0] + series[1]
    assert abs(energy / energy[0] - 1).max() < 2e-4 and abs(series[2] / series[2][0] - 1).max() < 1e-12


def test_orbit(run, tmp_path):  # noqa: F811
    """Three bodies on the figure eight of Chenciner and Montgomery (2000) come back after a period."""
    place, speed = numpy.array([0.97000436, -0.24308753]), numpy.array([0.93240737, 0.86473146])
    x = numpy.array([place, -place, [0, 0]])
    v = numpy.array([speed / 2, speed / 2, -speed])
    for name, array in zip(GALAXIES, [x[:, 0], x[:, 1], 0 * x[:, 0], v[:, 0], v[:, 1], 0 * x[:, 0], 0 * x[:, 0] + 1]):
        numpy.save(tmp_path / f"{name}.npy", numpy.ascontiguousarray(array))
    far = []
    for steps in (500, 1000):
        run(text_of("nbody"), "--quiet", *files("--in", GALAXIES), *files("--out", ["x", "y"], "_new"),
            "--iterations", steps, "--set", f"dt={6.32591398 / steps!r}", "--set", "softening=0",
            "--threads", 1)
        far.append(abs(numpy.array(load(tmp_path, ["x", "y"], "_new")).T - x).max())
    assert 3.5 < far[0] / far[1] < 4.5 and far[1] < 4e-4  # leapfrog is of second order


# ---------------------------------------------------------------- a plate

def test_plate(run, tmp_path):  # noqa: F811
    begin(run, text_of("plate_start"), "40x60", ["u", "held"])
    u, held = load(tmp_path, ["u", "held"])
    assert held[:, 0].all() and held.sum() > 120 and set(u[held == 1]) == {0, 100}
    run(text_of("plate"), "--quiet", *files("--in", ["u", "held"]), "--out", "u_new=u_new.npy",
        *files("--series", ["heat", "change"]), "--iterations", 50)
    heat, change = [], []
    for _ in range(50):
        wide = numpy.pad(u, 1, mode="edge")
        around = (wide[:-2, 1:-1] + wide[2:, 1:-1]) + (wide[1:-1, :-2] + wide[1:-1, 2:])
        new = numpy.where(held, u, u + 0.2 * (around - 4 * u))
        heat.append(math.fsum(new.ravel()))
        change.append(abs(new - u).max())
        u = new
    assert numpy.load(tmp_path / "u_new.npy").tobytes() == u.tobytes()
    assert numpy.load(tmp_path / "heat.npy").tolist() == heat
    assert numpy.load(tmp_path / "change.npy").tolist() == change


def test_sine(run, tmp_path):  # noqa: F811
    """A sine between cold edges keeps its form: the known rate of its decay, of the scheme and of heat."""
    n, steps, rate = 33, 200, 0.2
    wave = numpy.sin(math.pi * numpy.arange(n) / (n - 1))
    wave[-1] = 0
    held = numpy.ones((n, n), "uint8")
    held[1:-1, 1:-1] = 0
    numpy.save(tmp_path / "u.npy", numpy.outer(wave, wave))
    numpy.save(tmp_path / "held.npy", held)
    run(text_of("plate"), "--quiet", *files("--in", ["u", "held"]), "--out", "u_new=u_new.npy",
        "--iterations", steps)
    got = numpy.load(tmp_path / "u_new.npy")
    scheme = (1 - 8 * rate * math.sin(math.pi / (n - 1) / 2) ** 2) ** steps
    assert abs(got - scheme * numpy.outer(wave, wave)).max() < 1e-14
    heat = math.exp(-2 * math.pi ** 2 * rate * steps / (n - 1) ** 2)
    assert abs(got.max() / heat - 1) < 2e-3


# ---------------------------------------------------------------- shallow water

def moved(a, dy, dx):
    return numpy.roll(a, (-dy, -dx), (0, 1))


def water_step(state, step, dx=25000, dt=90, g=9.81, coriolis=5e-5, beta=2e-11, viscosity=1000, lead=0.1):
    """One step as shallow_water.c computes it, but field by field: each flow, corner and cell once."""
    h, u, v, du, dv = state
    height, c = len(h), dt / dx

    def flow(speed, a, b):
        part = c * speed
        return numpy.rint(part * (0.5 * (a + b) - 0.5 * part * (b - a)) * 2.0**30) * 2.0**-30
    row = numpy.arange(height)[:, None] + 0 * h
    west, south = flow(u, moved(h, 0, -1), h), flow(v, moved(h, -1, 0), h)
    new = h + ((west - moved(west, 0, 1)) + (south - moved(south, 1, 0)))
    late = new + lead * (new - h)
    spin = (v - moved(v, 0, -1)) - (u - moved(u, -1, 0))
    spin[0] = 0
    mean = 0.25 * ((h + moved(h, 0, -1)) + (moved(h, -1, 0) + moved(h, -1, -1)))
    f = coriolis + beta * (row - 0.5 * height) * dx
    # The corner in the north has the f of its cell's south and what beta adds on the way.
    mean_north = 0.25 * ((h + moved(h, 0, -1)) + (moved(h, 1, 0) + moved(h, 1, -1)))
    mean_east = 0.25 * ((h + moved(h, 0, 1)) + (moved(h, -1, 0) + moved(h, -1, 1)))
    q = (f + spin / dx) / mean
    q_north = (f + beta * dx + moved(spin, 1, 0) / dx) / mean_north
    q_east = (f + moved(spin, 0, 1) / dx) / mean_east
    speed = 0.25 * ((u * u + moved(u * u, 0, 1)) + (v * v + moved(v * v, 1, 0)))
    u_south, u_north = moved(u, -1, 0), moved(u, 1, 0)
    u_south[0], u_north[-1] = u[0], u[-1]
    mix = viscosity * dt / (dx * dx)
    sides = (south + moved(south, 1, 0)) + (moved(south, 0, -1) + moved(south, 1, -1))
    gu = 0.125 * dx * (q + q_north) * sides - c * (speed - moved(speed, 0, -1)) \
        + mix * ((moved(u, 0, -1) + moved(u, 0, 1)) + (u_south + u_north) - 4 * u)
    sides = (west + moved(west, 0, 1)) + (moved(west, -1, 0) + moved(west, -1, 1))
    gv = -0.125 * dx * (q + q_east) * sides - c * (speed - moved(speed, -1, 0)) \
        + mix * ((moved(v, 0, -1) + moved(v, 0, 1)) + (moved(v, -1, 0) + moved(v, 1, 0)) - 4 * v)
    more = 0.5 if step else 0
    u_new = u + (gu + more * (gu - du)) - c * g * (late - moved(late, 0, -1))
    v_new = v + (gv + more * (gv - dv)) - c * g * (late - moved(late, -1, 0))
    v_new[0] = 0
    return [new, u_new, v_new, gu, gv], h * speed + 0.5 * g * h * h


def test_vortex(run, tmp_path):  # noqa: F811
    """All bits of some steps; then the cyclone moves to the north-west, and no drop of water is lost."""
    wide = ["--set", "dx=80000"]
    begin(run, text_of("vortex"), "32x48", FLUID, *wide)
    state = start = load(tmp_path, FLUID)
    x, y = (numpy.arange(48) - 0.7 * 48) * 80000, (numpy.arange(32)[:, None] - 0.3 * 32) * 80000
    turn = 30 / 300000 * math.exp(0.5) * numpy.exp(-0.5 * (x * x + y * y) / 300000.0**2)
    f = 5e-5 + 2e-11 * (0.3 - 0.5) * 32 * 80000
    drop = (f * turn + 0.5 * turn * turn) * 300000.0**2 / 9.81
    assert abs(start[0] - (1000 - drop)).max() < 1e-8 and 20 < abs(start[2]).max() < 30
    run(text_of("shallow_water"), "--quiet", *files("--in", FLUID), *files("--out", FLUID, "_new"), *wide,
        *files("--series", ["energy", "water", "lowest"]), "--iterations", 20, "--set", "dt=60")
    energy = []
    for step in range(20):
        state, values = water_step(state, step, dx=80000, dt=60)
        energy.append(math.fsum(values.ravel()))
    for name, want in zip(FLUID, state):
        assert numpy.load(tmp_path / f"{name}_new.npy").tobytes() == want.tobytes(), name
    assert numpy.load(tmp_path / "energy.npy").tolist() == energy
    got = results(run(text_of("shallow_water"), "--json", *files("--in", FLUID), *wide, "--set", "dt=240",
                      *files("--series", ["water", "lowest"]), "--iterations", 720, "--threads", 1))
    water = numpy.load(tmp_path / "water.npy")
    assert (water == math.fsum(start[0].ravel())).all()
    low = numpy.load(tmp_path / "lowest.npy")
    assert 815 < low.min() and low.max() < 830
    row, column = got["lowest"]["item"]  # it began at 9.6 and 33.6
    assert 12 <= row <= 16 and 28 <= column <= 31


def test_waves(run, tmp_path):  # noqa: F811
    """A low standing wave without rotation comes back after the period of its length on this grid."""
    width, dx, dt, depth = 32, 25000, 20, 1000
    wave = 0.01 * numpy.cos(2 * math.pi * numpy.arange(width) / width) + numpy.zeros((3, 1))
    zero = numpy.zeros((3, width))
    for name, array in zip(FLUID, [numpy.rint((depth + wave) * 2.0**30) * 2.0**-30, zero, zero, zero, zero]):
        numpy.save(tmp_path / f"{name}.npy", array)
    turn = 2 * math.asin(dt * math.sqrt(9.81 * depth) / dx * math.sin(math.pi / width))  # in a step
    steps = round(2 * math.pi / turn)
    run(text_of("shallow_water"), "--quiet", *files("--in", FLUID), "--out", "h_new=h_new.npy",
        *[word for s in ("beta=0", "viscosity=0", "lead=0", "coriolis=0", f"dt={dt}") for word in ("--set", s)],
        "--iterations", steps)
    got = numpy.load(tmp_path / "h_new.npy") - depth
    assert abs(got - wave).max() < 0.01 * 0.002


# ---------------------------------------------------------------- the same bytes

JOBS = [("nbody", "galaxies", "41", GALAXIES, SPACE, "kinetic"),
        ("plate", "plate_start", "19x31", ["u", "held"], ["u"], "heat"),
        ("shallow_water", "vortex", "17x29", FLUID, FLUID, "energy")]


@pytest.mark.parametrize("name, start, shape, ins, outs, total", JOBS, ids=[j[0] for j in JOBS])
def test_same_bytes(run, tmp_path, name, start, shape, ins, outs, total):  # noqa: F811
    """Threads, grains and compilers change no byte, of the start and of what follows."""
    plain = tmp_path / "plain-cc"
    plain.write_text('#!/bin/sh\nexec cc "$@" -O0\n')
    plain.chmod(0o755)
    ways = [(["--threads", 1], {}), (["--threads", 3, "--grain", 7], {}), ([], {"CC": str(plain)})]
    if "QUERN_LONG_TESTS" in os.environ:
        ways += [([], {"CC": c}) for c in ("gcc", "clang") if shutil.which(c)]
    seen = set()
    for words, env in ways:
        run(text_of(start), "--quiet", "--shape", shape, *files("--out", ins), *words, env=env)
        run(text_of(name), "--quiet", *files("--in", ins), *files("--out", outs, "_new"),
            *files("--series", [total]), "--iterations", 5, *words, env=env)
        made = [*ins, *(f"{n}_new" for n in outs), total]
        seen.add(b"".join((tmp_path / f"{n}.npy").read_bytes() for n in made))
    assert len(seen) == 1
