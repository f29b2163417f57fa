"""The line of progress: written again and again in a terminal, one output that changes in a notebook."""

import sys
import time

BAR = 24  # its width


def _in_notebook():
    """Whether IPython runs in a kernel, whose outputs a notebook shows."""
    shell = sys.modules.get("IPython")
    shell = shell and shell.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _step_text(event):
    left = f", {event.seconds_left:.0f} s left" if event.seconds_left else ""
    return (f"epoch {event.epoch + 1}/{event.epochs}  loss {event.loss:.4f}  "
            f"{event.items_per_second:,.0f} items/s{left}")


def _epoch_text(epoch):
    parts = [f"epoch {epoch.epoch}/{epoch.epochs}  loss {epoch.train.loss:.4f}"]
    for name in ("train", "valid", "test"):
        score = getattr(epoch, name)
        if score and score.accuracy == score.accuracy:
            parts.append(f"{name} {100 * score.accuracy:.2f} %")
        elif score and name != "train":
            parts.append(f"{name} RMSE {score.rmse:.4g}")
    return "  ".join(parts)


class Line:
    """Progress in a terminal: one line that is written again within an epoch, one for each epoch.

    `step`, `epoch` and `note` say what to show, on any thread; `show` shows it, on the thread that
    called.
    """

    def __init__(self, out):
        self.out, self.width, self.due = out, 0, 0.0

    @staticmethod
    def wanted(progress):
        """A line, or None: by default where somebody can see it change. Only the writer of several
        ranks has one."""
        from . import ranks

        if progress is not None and not progress:
            return None
        there = sys.stderr is not None and not getattr(sys.stderr, "closed", False)
        if progress is None:
            progress = there and (sys.stderr.isatty() or _in_notebook())
        if not progress or not there or not ranks.is_writer():
            return None
        return Notebook() if _in_notebook() else Line(sys.stderr)

    def step(self, event):
        """What to show after a step; None most of the time."""
        now = time.monotonic()
        if now < self.due:
            return None
        self.due = now + 0.1
        return self._of_step(event)

    def _of_step(self, event):
        return _step_text(event), ""

    def epoch(self, epoch):
        """What to show after an epoch, or None."""
        return _epoch_text(epoch), "\n"

    def note(self, text):
        """What to show of a message."""
        return f"note: {text}", "\n"

    def run(self, part, text):
        """What to show after a run of a search; `part` of all is done."""
        return text, "\n"

    def show(self, shown):
        text, end = shown
        self.out.write("\r" + text.ljust(self.width) + end)
        self.out.flush()
        self.width = 0 if end else len(text)

    def end(self, whole):
        """Removes what the last epoch did not replace. `whole`: the training came to its end."""
        if self.width:
            self.show(("", ""))
            self.out.write("\r")
            self.out.flush()


class Notebook(Line):
    """Progress in a notebook: one output with a bar, and the messages of the training below it."""

    def __init__(self):
        self.due, self.handle = 0.0, None
        self.scores, self.notes, self.last = "", [], None

    def _of_step(self, event):
        return event.step / event.steps, _step_text(event)

    def epoch(self, epoch):
        self.scores = _epoch_text(epoch)
        done = epoch.epoch / epoch.epochs
        now = time.monotonic()
        if now < self.due and done < 1:  # epochs of less than a tenth of a second
            self.last = done, self.scores
            return None
        self.due = now + 0.1
        return done, self.scores

    def note(self, text):
        self.notes.append(f"note: {text}")
        return self.last or (0, self.scores)

    def run(self, part, text):
        return part, text

    def show(self, shown):
        from IPython.display import display

        self.last = shown
        done, text = shown
        full = int(BAR * done)
        bar = f"[{'=' * full}{' ' * (BAR - full)}] {100 * done:3.0f} %  {text}"
        output = {"text/plain": "\n".join([bar, *self.notes])}
        if self.handle is None:
            self.handle = display(output, raw=True, display_id=True)
        else:
            self.handle.update(output, raw=True)

    def end(self, whole):
        """Leaves the scores of the last epoch."""
        if self.last is not None and self.scores:
            self.show((1 if whole else self.last[0], self.scores))
