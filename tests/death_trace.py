"""What the trace of a run (--trace) tells about faults: what they hit, and how long they cost.

All times are of this machine's monotonic clock, in seconds.
"""

import json

LOSS = ("loss", "made up")  # marks in a trace


class Trace:
    """Spans and marks of the ranks that were left at the end."""

    def __init__(self, path):
        trace = json.loads(path.read_text())
        begun = trace["otherData"]["begun_us"]
        self.spans, self.marks, self.updates, self.over = [], {}, {}, 0.0
        for event in trace["traceEvents"]:
            if event["ph"] == "M":
                continue
            at = 1e-6 * (begun + event["ts"])
            ended = at + 1e-6 * event.get("dur", 0)
            if event["ph"] == "X":
                self.spans.append((event["name"], at, ended))
                if event["name"] == "update":
                    self.updates.setdefault(event["pid"], []).append(ended)
                    self.over = max(self.over, ended)
            elif event["name"] in LOSS:
                self.marks.setdefault(event["pid"], []).append((event["name"], at))

    def phase(self, moment):
        """Where a kill at that moment fell."""
        for marks in self.marks.values():
            losses, ends = ([at for what, at in marks if what == name] for name in LOSS)
            if any(at <= moment <= end for at, end in zip(sorted(losses), sorted(ends))):
                return "recovery"
        for phase, names in (("checkpoint", ["checkpoint"]),
                             ("validation", ["validation", "test"])):
            if any(n in names and at <= moment <= ended for n, at, ended in self.spans):
                return phase
        return "step" if moment <= self.over else "end"

    def after(self, name, moment):
        """Seconds from the fault to each left rank's first such mark; none unless all have one."""
        found = [min((at - moment for what, at in marks if what == name and at > moment),
                     default=None) for marks in self.marks.values()]
        return [] if None in found else found

    def longest_gap(self, moment):
        """The longest time between two steps of one rank that ended after that moment; -1 if none
        did."""
        return max((b - a for ends in map(sorted, self.updates.values())
                    for a, b in zip(ends, ends[1:]) if b > moment), default=-1)
