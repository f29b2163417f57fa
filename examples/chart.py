"""A chart as an SVG file: lines, bars and texts over two axes. The scripts of the examples use it, so that
they need no other package than NumPy."""

import html
import math
from pathlib import Path

COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 420, 70, 16, 40, 52


def ticks(low, high, count=7):
    """Round numbers from low to high."""
    step = 10.0 ** math.floor(math.log10((high - low) / count))
    step *= next((k for k in (1, 2, 5, 10) if (high - low) / (step * k) <= count), 10)
    return [step * k for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


class Axis:
    """From numbers to pixels."""

    def __init__(self, low, high, begin, end, log):
        self.log, self.begin, self.end = log, begin, end
        self.low, self.high = (math.log10(low), math.log10(high)) if log else (low, high)

    def at(self, x):
        if self.log:
            x = math.log10(x) if x > 0 else self.low
        part = (min(max(x, self.low), self.high) - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)

    def ticks(self):
        if not self.log:
            return ticks(self.low, self.high)
        return [10.0 ** k for k in range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1)]


class Chart:
    """Chart(title, label of x, (low, high), label of y, (low, high), log="xy"): log names the axes with powers
    of ten. With left=True the labels stand on the left."""

    def __init__(self, title, x_label, x_range, y_label, y_range, log="", left=False):
        self.x = Axis(*x_range, LEFT, WIDTH - RIGHT, "x" in log)
        self.y = Axis(*y_range, HEIGHT - BOTTOM, TOP, "y" in log)
        self.parts, self.labels = [], []
        self.side = LEFT + 14 if left else WIDTH - RIGHT - 250
        for x in self.x.ticks():
            self.polyline([(self.x.at(x), HEIGHT - BOTTOM), (self.x.at(x), TOP)], "#e4e4e4")
            self.text(self.x.at(x), HEIGHT - BOTTOM + 18, f"{x:,g}" if x < 1e6 else f"{x:,.0f}", "middle")
        for y in self.y.ticks():
            self.polyline([(LEFT, self.y.at(y)), (WIDTH - RIGHT, self.y.at(y))], "#e4e4e4")
            self.text(LEFT - 8, self.y.at(y) + 4, f"{y:g}", "end")
        self.text(LEFT, 24, title, "start", 'font-size="16" font-weight="bold"')
        self.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x_label, "middle")
        self.text(0, 0, y_label, "middle", f'transform="translate(18 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)"')

    def text(self, x, y, text, anchor, more=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{html.escape(text)}</text>')

    def polyline(self, points, colour, width=1.0, dashes=""):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"'
                          + (f' stroke-dasharray="{dashes}"' if dashes else "") + "/>")

    def line(self, x, y, colour, label=None, dashes=""):
        self.polyline([(self.x.at(a), self.y.at(b)) for a, b in zip(x, y)], colour, 2, dashes)
        self.label(colour, label)

    def bars(self, x, width, y, colour, label=None):
        for a, b in zip(x, y):
            left, top = self.x.at(a), self.y.at(b)
            if b > 0:
                self.parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" width="{self.x.at(a + width) - left:.1f}" '
                                  f'height="{HEIGHT - BOTTOM - top:.1f}" fill="{colour}"/>')
        self.label(colour, label)

    def interval(self, x, low, high, colour, label=None):
        """A vertical line at x, with a dot in its middle."""
        self.polyline([(self.x.at(x), self.y.at(low)), (self.x.at(x), self.y.at(high))], colour, 3)
        self.parts.append(f'<circle cx="{self.x.at(x):.1f}" cy="{self.y.at((low + high) / 2):.1f}" r="4" '
                          f'fill="{colour}"/>')
        self.label(colour, label)

    def label(self, colour, text):
        if text:
            self.labels.append((colour, text))

    def save(self, path):
        for k, (colour, text) in enumerate(self.labels):
            y = TOP + 20 + 19 * k
            self.parts.append(f'<rect x="{self.side}" y="{y - 9}" width="18" height="8" fill="{colour}"/>')
            self.text(self.side + 24, y, text, "start")
        frame = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
                 f'height="{HEIGHT}" font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" '
                 'fill="white"/>\n')
        Path(path).write_text(frame + "\n".join(self.parts) + "\n</svg>\n")
