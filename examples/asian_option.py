#!/usr/bin/env python3
"""The results of kernels/asian_option.c: prices and their intervals, from the sums in recipes of runs.

    asian_option.py RECIPE.json ...     prints a table; writes asian.svg
"""

import argparse
import json
import math

# A normal variable is less than so many standard deviations away from its mean with probability 0.95.
WIDE = 1.959964


def geometric_price(given):
    """Of the option on the geometric mean, by the formula of Black and Scholes for its distribution."""
    dates, sigma, years = given["dates"], given["sigma"], given["years"]
    spread = sigma * math.sqrt(years * (dates + 1) * (2 * dates + 1) / (6 * dates * dates))
    middle = (given["rate"] - sigma * sigma / 2) * years * (dates + 1) / (2 * dates)
    forward = given["price"] * math.exp(middle + spread * spread / 2)
    up = (math.log(forward / given["strike"]) + spread * spread / 2) / spread
    chance = [0.5 * (1 + math.erf(x / math.sqrt(2))) for x in (up, up - spread)]
    return math.exp(-given["rate"] * years) * (forward * chance[0] - given["strike"] * chance[1])


def estimates(recipe):
    """(mean, half of the interval) of the price, of the geometric one, and of the price with its help."""
    n = math.prod(recipe["shape"])
    s = {name: float(value) for name, value in recipe["results"].items()}
    paid, geometric = s["paid"] / n, s["geometric"] / n
    paid_variance = (s["paid_squared"] - n * paid * paid) / (n - 1)
    geometric_variance = (s["geometric_squared"] - n * geometric * geometric) / (n - 1)
    covariance = (s["product"] - n * paid * geometric) / (n - 1)
    slope = covariance / geometric_variance if geometric_variance > 0 else 0.0
    known = geometric_price({name: float(value) for name, value in recipe["scalars"].items()})
    rest = max(paid_variance - slope * covariance, 0.0)
    return [(mean, WIDE * math.sqrt(variance / n)) for mean, variance in [
        (paid, paid_variance), (geometric, geometric_variance), (paid + slope * (known - geometric), rest)]], known


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="+")
    parser.add_argument("--picture", default="asian.svg", help="default asian.svg")
    args = parser.parse_args()
    rows = []
    for path in args.recipes:
        with open(path, encoding="utf-8") as file:
            try:
                recipe = json.load(file)
                rows.append((math.prod(recipe["shape"]), *estimates(recipe)))
            except (ValueError, KeyError, TypeError, ZeroDivisionError):
                raise SystemExit(f"{path} is not the recipe of asian_option.c with two paths or more") from None
    rows.sort(key=lambda row: row[0])
    print(f"{'paths':>9}  {'price':>17}  {'geometric':>17}  known    {'price with it':>19}")
    for n, (price, geometric, helped), known in rows:
        print(f"{n:9,}  {price[0]:8.4f} ± {price[1]:.4f}  {geometric[0]:8.4f} ± {geometric[1]:.4f}  {known:.4f}  "
              f"{helped[0]:9.5f} ± {helped[1]:.5f}")
    draw(rows, args.picture)


def draw(rows, path):
    from chart import COLOURS, Chart
    best = rows[-1][1][2][0]
    wide = 1.2 * max(price[1] + abs(price[0] - best) for _, (price, _, _), _ in rows) or 1.0
    chart = Chart("An Asian option: price and its interval of 95 %", "random paths",
                  (rows[0][0] / 2, rows[-1][0] * 2), "price", (best - wide, best + wide), log="x")
    for k, (n, (price, _, helped), _) in enumerate(rows):
        chart.interval(n / 1.08, price[0] - price[1], price[0] + price[1], COLOURS[0], "" if k else "mean of the paths")
        chart.interval(n * 1.08, helped[0] - helped[1], helped[0] + helped[1], COLOURS[1],
                       "" if k else "with the geometric option")
    chart.save(path)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        raise SystemExit(f"{error.filename}: {error.strerror}") from None
