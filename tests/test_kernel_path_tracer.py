"""The path tracer of examples/kernels beside a second one, in NumPy: all pixels of all rays at once."""

import math
import re
import sys

import numpy

from builds import ROOT
from test_kernel import cache, quick, results, run  # noqa: F401: fixtures

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import draws  # noqa: E402
import functions  # noqa: E402

TEXT = (ROOT / "examples" / "kernels" / "path_tracer.c").read_text()
COLOURS = ["red", "green", "blue"]
OUTS = [word for c in COLOURS for word in ("--out", f"{c}={c}.npy")]
DIFFUSE, MIRROR, GLASS, LAMP = range(4)
EYE, TILES = numpy.array([0, 1.9, 8]), numpy.array([0.25, 0.3, 0.35])


def scene():
    """The tables of the kernel's text: kinds, centres, radii, colours."""
    table = {name: numpy.array([float(n) for n in numbers.split(",")])
             for name, numbers in re.findall(r"static const \w+ (\w+)\[8\] = {(.*)};", TEXT)}
    return (table["KIND"].astype(int), numpy.array([table[k] for k in "XYZ"]).T, table["RADIUS"],
            numpy.array([table[k] for k in ("RED", "GREEN", "BLUE")]).T)


def dot(a, b):
    return a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2]


def unit(d):
    return d / numpy.sqrt(dot(d, d))[:, None]


def nearest(origin, d, centre, radius):
    """How far each ray goes, and the sphere that it meets, or -1."""
    c = origin[:, None] - centre
    b, square = dot(c, d[:, None]), dot(c, c) - radius * radius
    inside = b * b - square
    root = numpy.sqrt(numpy.maximum(inside, 0))
    far = numpy.where(-b - root > 1e-6, -b - root, numpy.where(-b + root > 1e-6, -b + root, 1e9))
    far = numpy.where(inside < 0, 1e9, far)
    return far.min(1), numpy.where(far.min(1) < 1e9, far.argmin(1), -1)


def scatter(form, kinds, d, n, cosine, leaves, draw):
    """The direction after a reflection or a refraction; `draw` gives the two random numbers."""
    first, second = draw
    h, turn = 1 - 2 * first, 6.283185307179586 * second
    flat = numpy.sqrt(1 - h * h)
    diffuse = n + numpy.array([flat * form.cos(turn), flat * form.sin(turn), h]).T
    ratio = numpy.where(leaves, 1.5, 1 / 1.5)
    sine = ratio * ratio * (1 - cosine * cosine)
    beyond = numpy.sqrt(numpy.maximum(1 - sine, 0))
    a = 1 - numpy.where(leaves, beyond, cosine)
    part = numpy.where(sine >= 1, 1, 0.04 + 0.96 * (a * a) * (a * a) * a)
    mirrors = (kinds == MIRROR) | (first < part)
    along = numpy.where(mirrors, 1, ratio)[:, None]
    across = numpy.where(mirrors, 2 * cosine, ratio * cosine - beyond)[:, None]
    return numpy.where((kinds == DIFFUSE)[:, None], diffuse, along * d + across * n)


def trace(form, of, height, width, samples):
    kind, centre, radius, colour = scene()
    item = numpy.arange(height * width)
    y, x = item // width, item % width
    light = numpy.zeros((len(item), 3))
    for s in range(samples):
        k = numpy.full(len(item), 32 * s)
        d = numpy.array([0.34 * (2 * (x + of(item).uniform(k)) - width) / height,
                         0.34 * (height - 2 * (y + of(item).uniform(k + 1))) / height - 0.14,
                         numpy.full(len(item), -1.0)]).T
        at, origin, tint = item, EYE + 0 * d, numpy.ones_like(d)
        for bounce in range(12):
            d = unit(d)
            far, hit = nearest(origin, d, centre, radius)
            lamp = (hit >= 0) & (kind[hit] == LAMP)
            rise = (0.5 - 0.5 * d[:, 1])[:, None]
            base = numpy.array([0.5, 0.7, 1])
            glow = numpy.where(lamp[:, None], colour[hit], 0.6 * (base + (1 - base) * rise))
            ends = lamp | (hit < 0)
            light[at[ends]] += (tint * glow)[ends]
            at, d, origin, tint, far, hit = (a[~ends] for a in (at, d, origin, tint, far, hit))
            origin = origin + far[:, None] * d
            squares = (numpy.floor(origin[:, 0]) + numpy.floor(origin[:, 2])).astype(int)
            dark = (hit == 0) & (squares % 2 == 1)
            tint = tint * numpy.where(dark[:, None], TILES, colour[hit])
            n = (origin - centre[hit]) / radius[hit][:, None]
            cosine = -dot(n, d)
            leaves = cosine < 0
            n, cosine = numpy.where(leaves[:, None], -n, n), abs(cosine)
            k = numpy.full(len(at), 32 * s + 2 * bounce + 2)
            draw = of(at).uniform(k), of(at).uniform(k + 1)
            d = scatter(form, kind[hit], d, n, cosine, leaves, draw)
    return light


def test_pixels(run, tmp_path):  # noqa: F811
    """The same rays, in two programs: each pixel of a small picture, and the exact sum of the light."""
    height, width, samples = 12, 18, 3
    contract = (ROOT / "docs" / "exactness.md").read_text()
    section = contract[contract.index("## 21. "):contract.index("## 22. ")]
    form = functions.formats(section)[1]
    light = trace(form, lambda item: draws.of(section, 5, item), height, width, samples)
    done = run(TEXT, "--shape", f"{height}x{width}", "--seed", 5, "--set", f"samples={samples}", *OUTS, "--json")
    for c, want in zip(COLOURS, light.T):
        want = (255.99 * numpy.sqrt(numpy.minimum(want / samples, 1))).astype("uint8")
        assert (numpy.load(tmp_path / f"{c}.npy").ravel() == want).all(), c
    sums = ((light[:, 0] + light[:, 1]) + light[:, 2]) / samples
    assert float(results(done)["light"]["value"]) == math.fsum(sums)


def test_furnace(run, tmp_path):  # noqa: F811
    """Where nothing absorbs and the sky is 1 everywhere, all is as bright as the sky: exactly 1."""
    text = re.sub(r"(double (?:RED|GREEN|BLUE)\[8\] = {).*}", r"\g<1>1, 1, 1, 1, 1, 1, 1, 1}", TEXT)
    text = re.sub(r"dark \? 0\.\d+", "dark ? 1", text).replace("BOUNCES = 12", "BOUNCES = 100000")
    text = re.sub(r"(static double sky\(.*\) \{ return ).*;", r"\g<1>1;", text)
    got = results(run(text, "--shape", "24x36", "--set", "samples=4", *OUTS, "--json"))
    assert float(got["light"]["value"]) == 3 * 24 * 36
    assert all((numpy.load(tmp_path / f"{c}.npy") == 255).all() for c in COLOURS)


def test_same_bytes(run, tmp_path):  # noqa: F811
    """Threads, grains and compilers, for items of unequal cost."""
    plain = tmp_path / "plain-cc"
    plain.write_text('#!/bin/sh\nexec cc "$@" -O0\n')
    plain.chmod(0o755)
    seen = set()
    for words, env in ((["--threads", 1], {}), (["--threads", 3, "--grain", 7], {}), ([], {"CC": str(plain)})):
        run(TEXT, "--quiet", "--shape", "16x24", "--set", "samples=2", *OUTS, *words, env=env)
        seen.add(b"".join((tmp_path / f).read_bytes() for f in [*(f"{c}.npy" for c in COLOURS), "red.recipe.json"]))
    assert len(seen) == 1
