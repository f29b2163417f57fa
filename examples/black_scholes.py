#!/usr/bin/env python3
"""Inputs and results of kernels/black_scholes.c: an option with the strike 100 for many prices and times.

    black_scholes.py make     writes price.npy, strike.npy, years.npy
    black_scholes.py show     prints some of call.npy and put.npy; writes option.svg
"""

import argparse

import numpy

PRICES, STRIKE = numpy.linspace(60, 140, 161), 100.0
MONTHS = numpy.array([0.25, 3, 6, 12, 24])


def make():
    years, price = numpy.meshgrid(MONTHS / 12, PRICES, indexing="ij")
    numpy.save("price.npy", price.ravel())
    numpy.save("years.npy", years.ravel())
    numpy.save("strike.npy", numpy.full(price.size, STRIKE))


def show(picture):
    from chart import COLOURS, Chart
    call, put = (numpy.load(f"{name}.npy").reshape(len(MONTHS), len(PRICES)) for name in ("call", "put"))
    print("price  " + "  ".join(f"{months:g} months".rjust(13) for months in MONTHS) + "   (call, put)")
    for k in range(0, len(PRICES), 40):
        print(f"{PRICES[k]:5g}  " + "  ".join(f"{c:6.2f} {p:6.2f}" for c, p in zip(call[:, k], put[:, k])))
    chart = Chart(f"A call with the strike {STRIKE:g}", "price of the share", (PRICES[0], PRICES[-1]),
                  "price of the option", (0, 50), left=True)
    for k, months in enumerate(MONTHS):
        chart.line(PRICES, call[k], COLOURS[k], f"{months:g} months before it ends")
    chart.line(PRICES, numpy.maximum(PRICES - STRIKE, 0), "black", "at its end", "4 3")
    chart.save(picture)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "show"])
    parser.add_argument("--picture", default="option.svg", help="of show; default option.svg")
    args = parser.parse_args()
    make() if args.what == "make" else show(args.picture)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        raise SystemExit(f"{error.filename}: {error.strerror}") from None
