"""Section 17.15 of the contract: stages."""

from binary32 import from_text, to_text
from optimise import Schedule


def parse(text):
    """[{"epochs": 5, "lr": ..., ...}] of a text that says everything that is not the default."""
    found = []
    for part in text.rstrip("; ").split(";"):
        words = part.split()
        stage = dict(zip(words[::2], words[1::2]))
        found.append({"epochs": int(stage["epochs"]), "lr": from_text(stage["lr"]),
                      "schedule": stage.get("schedule", "constant"),
                      "every": int(stage.get("lr-step", 0)),
                      "gamma": from_text(stage.get("lr-gamma", "0")),
                      "least": from_text(stage.get("lr-min", "0")),
                      "warmup": int(stage.get("warmup", 0))})
    return found


def canonical(text):
    parts = []
    for s in parse(text) if text else []:
        part = f"epochs {s['epochs']} lr {to_text(s['lr'])}"
        if s["schedule"] != "constant":
            part += f" schedule {s['schedule']}"
        if s["schedule"] == "step":
            part += f" lr-step {s['every']}"
        if s["schedule"] in ("step", "exponential"):
            part += f" lr-gamma {to_text(s['gamma'])}"
        part += f" lr-min {to_text(s['least'])}" if s["least"] else ""
        parts.append(part + (f" warmup {s['warmup']}" if s["warmup"] else ""))
    return "; ".join(parts)


class schedule:
    """The rates of all stages; `steps` is the number of steps of an epoch."""

    def __init__(self, text, steps):
        self.steps, self.stages = steps, parse(text)

    def lr(self, t, epoch):
        first = 0
        for s in self.stages:
            if epoch < first + s["epochs"]:
                break
            first += s["epochs"]
        own = Schedule(s["schedule"], s["lr"], s["warmup"], s["every"], s["gamma"],
                       s["epochs"] * self.steps, s["least"])
        return own.lr(t - first * self.steps, epoch - first)
