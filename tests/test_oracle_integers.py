"""The oracle's integer products (section 15 of docs/exactness.md) against rational numbers.

tests/test_matrix.py compares whole runs with the program; here the oracle itself is checked, so
that the two do not agree on a fault of both.
"""

import sys
from fractions import Fraction
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))

import binary32  # noqa: E402
import network  # noqa: E402
import products  # noqa: E402

F = np.float32
EVERY_BITS = products.BITS.values()
LIMIT = F(2.0**60)


def floats(generator, *shape):
    """Finite numbers of every exponent, some subnormal, and both zeros among them."""
    words = generator.integers(0, 2**32, shape, dtype=np.uint64).astype(np.uint32)
    values = words.view(F)
    return np.where(np.isfinite(values) & (generator.random(shape) > 0.05), values, F(-0.0))


def block_by_fractions(values, bits):
    """15.2 in other words: the smallest exponent, not below -93-B, with no |q| of 2^(B-1)."""
    exact = [Fraction(float(v)) for v in values]
    t = -93 - bits
    while True:
        q = [round(v / Fraction(2) ** t) for v in exact]
        if max(map(abs, q)) < 2 ** (bits - 1):
            return q, t
        t += 1


@pytest.mark.parametrize("bits", EVERY_BITS)
def test_block_is_the_finest_that_fits(bits):
    generator = np.random.default_rng(1)
    rows = floats(generator, 60, 3)
    # Exponents of like size, tiny blocks, zeros, and significands on both sides of the carry.
    rows = np.concatenate([rows, generator.standard_normal((40, 3)).astype(F),
                           floats(generator, 40, 3) % F(2.0**-94), np.zeros((1, 3), F)])
    step = 2 ** (24 - bits)
    edges = [(e << 23) + 2**23 - step + d for e in (1, 30, 31, 32, 127, 253) for d in (-1, 0, 1)]
    edges += [0x7F7FFFFF, 1, 0x00800000]
    rows = np.concatenate([rows, [[v, -v / 3, 0] for v in np.array(edges, np.uint32).view(F)]])
    rows = rows.astype(F)
    q, t, factor = products.Integers(bits).block(rows, 1)
    for i, row in enumerate(rows):
        assert (q[i].tolist(), t[i, 0]) == block_by_fractions(row, bits), row
        assert Fraction(float(factor[i, 0])) == Fraction(2) ** int(t[i, 0])
    whole, one, _ = products.Integers(bits).block(rows, None)
    wanted = block_by_fractions(rows.ravel(), bits)
    assert (whole.ravel().tolist(), one.item()) == wanted


def sum_of_products(rows, columns):
    return [[sum(int(p) * int(q) for p, q in zip(r, c)) for c in columns] for r in rows]


def units(value):
    """2^t of a block, as a Fraction."""
    return Fraction(2) ** int(value)


@pytest.mark.parametrize("bits", EVERY_BITS)
def test_forward_and_backward_by_fractions(bits):
    generator = np.random.default_rng(2)
    product = products.Integers(bits)
    a, weight, delta = (generator.standard_normal(s).astype(F) for s in ((5, 9), (4, 9), (5, 4)))
    weight *= np.array([[1], [1e-30], [1e12], [0]], F)
    a[1] *= F(1e-35)
    delta *= np.array([[1e13], [1e-3], [1], [1e-20], [0]], F)
    bias = generator.standard_normal(4).astype(F)
    qa, ta, _ = product.block(a, 1)
    qw, tw, _ = product.block(weight, 1)
    z = product.forward(a, weight, bias)
    for i, row in enumerate(sum_of_products(qa, qw)):
        for o, n in enumerate(row):
            scale = binary32.nearest(units(ta[i, 0]) * units(tw[o, 0]))
            rounded = Fraction(float(binary32.nearest(n))) * Fraction(float(scale))
            assert z[i, o] == binary32.nearest(rounded + Fraction(float(bias[o])))
    e = product.backward(delta, weight)
    for i in range(len(delta)):
        c = [binary32.nearest(Fraction(float(d)) * units(t)) for d, t in zip(delta[i], tw[:, 0])]
        qc, tc, _ = product.block(np.array([c], F), 1)
        for k, n in enumerate(sum_of_products(qc, qw.T)[0]):
            rounded = Fraction(float(binary32.nearest(n)))
            assert e[i, k] == binary32.nearest(rounded * units(tc[0, 0]))


@pytest.mark.parametrize("bits", EVERY_BITS)
@pytest.mark.parametrize("power", [-200, -60, -26, -13, 0, 5, *range(6, 20, 2)])
def test_gradient_by_fractions(bits, power):
    generator = np.random.default_rng(3)
    product = products.Integers(bits)
    delta = np.ldexp(generator.standard_normal((6, 3)), max(power, -90)).astype(F)
    a = np.ldexp(generator.standard_normal((6, 5)), min(0, power + 90)).astype(F)
    delta[2], a[4] = 0, 0
    got = product.gradient(delta, a, LIMIT)
    qa, ta, _ = product.block(a, None)
    qd, td, _ = product.block(delta, None)
    for o, row in enumerate(sum_of_products(qd.T, qa.T)):
        for k, n in enumerate(row):
            assert got[o, k] == round(n * units(ta.item()) * units(td.item()))


def test_quotients_have_ties_to_even():
    numbers = [s * (m * 2**p + d) for s in (1, -1) for m in (1, 3, 5, 6) for p in (0, 1, 4, 59)
               for d in (-1, 0, 1)] + [0, 2**62 - 1, 1 - 2**62]
    for shift in (1, 2, 5, 59, 60, 61, 62, 63, 64, 228):
        got = products.nearest_quotients(np.array(numbers, np.int64), shift)
        assert got.tolist() == [round(Fraction(n, 2**shift)) for n in numbers]


@pytest.mark.parametrize("bits", EVERY_BITS)
@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_what_is_no_number_stays_in_its_block(bits, bad):
    """An item's outputs and errors depend on no other item, an output's on no other output."""
    generator = np.random.default_rng(4)
    product = products.Integers(bits)
    a, weight, delta = (generator.standard_normal(s).astype(F) for s in ((4, 5), (3, 5), (4, 3)))
    bias = np.zeros(3, F)
    clean, errors = product.forward(a, weight, bias), product.backward(delta, weight)
    for array, row in ((a, 2), (delta, 1)):
        array[row, 1] = bad
    z, e = product.forward(a, weight, bias), product.backward(delta, weight)
    assert np.isnan(z[2]).all() and (z[[0, 1, 3]] == clean[[0, 1, 3]]).all()
    assert np.isnan(e[1]).all() and (e[[0, 2, 3]] == errors[[0, 2, 3]]).all()
    for d, x in ((delta, abs(np.ones_like(a))), (np.zeros_like(delta), a)):
        with pytest.raises(SystemExit):
            product.gradient(d, x, LIMIT)
    weight[1, 4] = bad
    z = product.forward(a[:2], weight, bias)
    assert np.isnan(z[:, 1]).all() and (z[:, [0, 2]] == clean[:2, [0, 2]]).all()
    assert np.isnan(product.backward(delta[2:], weight)).all()


@pytest.mark.parametrize("bits", EVERY_BITS)
def test_partials_end_the_job_at_the_limit(bits):
    product = products.Integers(bits)
    half = np.array([[2.0**30]], F)  # of both: the product is 2^60
    with pytest.raises(SystemExit):
        product.gradient(half, half, LIMIT)
    below = F(2.0**30 * (1 - 2.0 ** (2 - bits)))  # one integer less
    assert product.gradient(half, below[None, None], LIMIT) == int(below) * 2**30
    with pytest.raises(SystemExit):
        product.gradient(np.array([[3e38]], F), np.array([[3e38]], F), LIMIT)
    assert product.gradient(np.array([[3e38], [0]], F), np.array([[0], [3e38]], F), LIMIT) == 0


@pytest.mark.parametrize("arith, far", [("i7", 0.5), ("i14", 1e-3), ("i21", 1e-5)])
def test_products_are_near_the_chains(arith, far):
    """The right products of the right operands, as near as so many bits can be."""
    generator = np.random.default_rng(5)
    layers = network.parse_model("dense 12 tanh; dense 8 relu; dense 4 softmax", 10)
    network.initialise(layers, 7, "auto")
    x = generator.random((20, 10)).astype(F)
    labels = generator.integers(0, 4, 20)

    def sums(product):
        passes = network.forward(layers, x, product=product)
        deltas = network.deltas("cross-entropy", layers, passes, labels, 44, product)
        return [total / 2.0**44 for pair in
                network.sums(layers, passes, deltas, 7, LIMIT, product) for total in pair]

    for want, got in zip(sums(network.CHAINS), sums(products.of(arith)), strict=True):
        assert abs(want - got).max() < far * abs(want).max()
        assert (want != got).any()
