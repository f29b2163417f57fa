"""The line of progress in a terminal or a notebook."""

import sys
import time


def _in_notebook():
    shell = sys.modules.get("IPython")
    shell = shell and shell.get_ipython()
    return shell is not None and "ZMQ" in type(shell).__name__


class Line:
    """One line that is written again and again. Only the writer of several ranks has one."""

    def __init__(self, out):
        self.out, self.last, self.width = out, 0.0, 0

    @classmethod
    def wanted(cls, progress):
        """A line, or None: by default where somebody can see it change."""
        from . import ranks

        if progress is None:
            progress = sys.stderr is not None and (sys.stderr.isatty() or _in_notebook())
        return cls(sys.stderr) if progress and ranks.is_writer() else None

    def _write(self, text, end=""):
        self.out.write("\r" + text.ljust(self.width) + end)
        self.out.flush()
        self.width = 0 if end else len(text)

    def step(self, event):
        now = time.monotonic()
        if now - self.last < 0.1:
            return
        self.last = now
        left = f", {event.seconds_left:.0f} s left" if event.seconds_left else ""
        self._write(f"epoch {event.epoch + 1}/{event.epochs}  loss {event.loss:.4f}  "
                    f"{event.items_per_second:,.0f} items/s{left}")

    def epoch(self, epoch):
        parts = [f"epoch {epoch.epoch}/{epoch.epochs}  loss {epoch.train.loss:.4f}"]
        for name in ("train", "valid", "test"):
            score = getattr(epoch, name)
            if score and score.accuracy == score.accuracy:
                parts.append(f"{name} {100 * score.accuracy:.2f} %")
            elif score and name != "train":
                parts.append(f"{name} RMSE {score.rmse:.4g}")
        self._write("  ".join(parts), "\n")

    def note(self, text):
        self._write(f"note: {text}", "\n")

    def end(self):
        if self.width:
            self._write("")
            self.out.write("\r")
            self.out.flush()
