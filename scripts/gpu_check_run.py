"""What the steps of gpu_check.py share: processes with a time limit, faults, progress, the report.

A step gives a Check what it found: `passes` for a comparison that was right, `fault` for one that was
not, `note` for what somebody should know, `measured` for a number. The report has them all, without
what is private: `Scrub` removes paths and the names of the user and the machine.

Time is shared out so that the check always ends. A step has a share of what is left, a command a
limit. What the time of a step ends is left out, and the verdict says what. A command that exceeds its
limit is a fault, unless the device is slow: then its small training (`Check.training`) takes longer
than PACE seconds, and limits grow with it.
"""

import getpass
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_HANGS = 3      # of one step, which then ends
LAST_LINES = 12     # of a failed command, in the report
KILLED = 10         # seconds in which a killed process has to end
TOLD_EVERY = 10     # seconds between lines of progress, where lines cannot be replaced
PACE = 3            # seconds that the small training takes at most on a device that is not slow
MOST_OF_SHARE = 1.25  # a step may take so much of its share of the time that is left


class StepEnds(Exception):
    """The time of a step is over, or too much of it hangs; what it found counts."""

    def __init__(self, why, what=""):
        super().__init__(why)
        self.what = what  # it leaves out


class TooSlow(StepEnds):
    """A command exceeded its limit on a slow device; it is left out."""


@dataclass
class Done:
    """A command that ended, or was ended: then `status` is None."""

    words: list
    status: "int | None"
    out: str
    err: str
    seconds: float
    stuck: bool = False  # not even SIGKILL has ended it
    left_out: str = ""   # why, where time ended it and not a fault

    def rows(self):
        """The JSON objects among the lines of its output."""
        found = []
        for line in self.out.splitlines():
            if line.startswith("{"):
                try:
                    found.append(json.loads(line))
                except ValueError:
                    pass  # cut off by the time limit
        return found

    def last_lines(self):
        lines = (self.out[-4000:] + "\n" + self.err[-8000:]).splitlines()
        told = [row.get("text", "") for row in self.rows() if row.get("event") == "note"]
        kept = told[-3:] + [line for line in lines if line.strip() and not line.startswith("{")]
        return "\n".join(kept[-LAST_LINES:])

    def how_it_ended(self):
        if self.status is None:
            more = "; not even SIGKILL ended it: the driver holds it" if self.stuck else ""
            return f"did not end within {self.seconds:.0f} s{more}"
        if self.status < 0:
            return f"was ended by {signal.Signals(-self.status).name}"
        return f"ended with {self.status}"


class Processes:
    """Runs commands in process groups of their own, so that a hanging one goes with all its children."""

    def __init__(self):
        self.lock, self.running = threading.Lock(), set()

    def run(self, words, limit, environment, folder):
        words, begun, stuck = [str(word) for word in words], time.monotonic(), False
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = subprocess.Popen(words, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                                     env=environment, cwd=folder, start_new_session=True)
            with self.lock:
                self.running.add(child)
            try:
                status = child.wait(limit)
            except subprocess.TimeoutExpired:
                status, stuck = None, not self.kill(child)
            with self.lock:
                self.running.discard(child)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        return Done(words, status, *texts, time.monotonic() - begun, stuck)

    @staticmethod
    def kill(child):
        """Whether it is gone afterwards."""
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            child.wait(KILLED)
            return True
        except subprocess.TimeoutExpired:
            return False

    def kill_all(self):
        with self.lock:
            children = list(self.running)
        for child in children:
            self.kill(child)


class Scrub:
    """Removes from a text what tells whose machine it is: paths, host and user names, addresses."""

    def __init__(self, own_folders):
        names = {"user": {getpass_user(), *(os.environ.get(v, "") for v in ("USER", "LOGNAME", "SUDO_USER"))},
                 "host": set()}
        for host in (socket.gethostname(), socket.getfqdn(), os.uname().nodename):
            names["host"] |= {host, host.partition(".")[0]}
        self.names = [(name, what) for what, found in names.items()
                      for name in sorted(found, key=len, reverse=True)
                      if name not in ("", "root", "localhost")]
        self.folders = sorted(((str(path), mark) for path, mark in own_folders if str(path) != "/"),
                              key=lambda pair: -len(pair[0]))

    def text(self, text):
        for folder, mark in self.folders:
            text = text.replace(folder, mark)
        # Of a library of the system the last part is of use, and it is the same on all machines.
        text = re.sub(r"(?<![\w<>./])/(?:usr|lib|lib64|opt|etc|dev|proc|sys)(?:/[^\s:'\",;()]+)*/([^\s/:'\",;()]+)",
                      r"<path>/\1", text)
        text = re.sub(r"(?<![\w<>./])/(?:[^\s/:'\",;()]+/)+[^\s/:'\",;()]*", "<path>", text)
        for name, what in self.names:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", f"<{what}>", text, flags=re.IGNORECASE)
        return re.sub(r"\b\d{1,3}(?:\.\d{1,3}){3}(?=:\d)", "<address>", text)

    def left(self, text):
        """What of it still stands in a text."""
        return [name for name, _ in self.names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.I)] + \
            [folder for folder, _ in self.folders if folder in text]


def shorter(text, most=90):
    return text if len(text) <= most else text[:most].rpartition(" ")[0] + " ..."


def getpass_user():
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


@dataclass
class StepResult:
    name: str
    title: str
    passed: int = 0
    faults: int = 0
    seconds: float = 0.0
    outcome: str = "in progress"
    hangs: int = 0
    left_out: list = field(default_factory=list)  # what was not done


@dataclass
class Check:
    """One run of gpu_check.py."""

    program: str
    device: str
    folder: Path
    report: Path
    limit: float            # seconds of one command
    deadline: float         # by time.monotonic()
    quick: bool
    environment: dict
    scrub: Scrub
    seconds: float = 600.0  # of the whole check
    facts: list = field(default_factory=list)         # (what, text)
    devices: list = field(default_factory=list)       # rows of `quern devices`
    absent: dict = field(default_factory=dict)        # kind: why there is none
    files: dict = field(default_factory=dict)         # of tests/recipes.py
    results: list = field(default_factory=list)
    faults: list = field(default_factory=list)        # (step, what, detail)
    notes: list = field(default_factory=list)
    measures: list = field(default_factory=list)      # (what, text)
    processes: Processes = field(default_factory=Processes)
    lock: threading.RLock = field(default_factory=threading.RLock)
    ends: float = 0.0       # of the present step
    training: object = None  # a function that gives the words of the small training
    pace: float = 0.0       # seconds that this takes, at most
    base_limit: float = 0.0
    pacing: threading.Lock = field(default_factory=threading.Lock)
    steps: int = 0
    told: float = 0.0
    verdict: str = ""
    begun: float = field(default_factory=time.monotonic)

    # ---- what a step found

    @property
    def step(self):
        return self.results[-1]

    def passes(self, count=1):
        with self.lock:
            self.step.passed += count

    def fault(self, what, detail=""):
        with self.lock:
            self.step.faults += 1
            self.faults.append((self.step.name, what, detail))
            self.say(f"  FAULT: {self.scrub.text(what)}")

    def note(self, text):
        with self.lock:
            if (self.step.name, text) not in self.notes:
                self.notes.append((self.step.name, text))

    def measured(self, what, text):
        with self.lock:
            self.measures.append((what, text))

    # ---- commands

    def left(self):
        """Seconds that this step still has."""
        return min(self.ends, self.deadline) - time.monotonic()

    def run(self, *words, what="", limit=None, more=None, folder=None, partly=False):
        """Runs a command. One that exceeds its limit is a fault, unless the step's time ends it or the
        device is slow: then it is left out, or with `partly` its output so far counts."""
        wanted = limit or self.limit
        allowed = min(wanted, self.left())
        if allowed <= 0:
            raise StepEnds("time is over")
        done = self.processes.run(words, allowed, {**self.environment, **(more or {})}, folder or self.folder)
        if done.status is not None or done.stuck:
            return done
        if allowed < wanted:
            done.left_out = f"time is over, after {allowed:.0f} s of {what}" if what else "time is over"
        elif self.is_slow():
            done.left_out = f"the device is too slow for it in {allowed:.0f} s"
        if done.left_out and not partly:
            raise (StepEnds if allowed < wanted else TooSlow)(done.left_out, what)
        return done

    def is_slow(self):
        """Asked when a command exceeds its limit. A device that was quick may be slow by now."""
        with self.pacing:
            if self.limit <= self.base_limit:
                self.measure_pace()
            return self.limit > self.base_limit

    def begin_pace(self):
        """Before the steps; the first small training also compiles its kernels."""
        self.base_limit = self.limit
        if self.training:
            self.say("a small training, to see how fast the device is")
            self.processes.run(self.training(), min(4 * self.limit, self.left() / 8), self.environment, self.folder)
            self.measure_pace()

    def measure_pace(self):
        """Limits of commands, by the time that the small training takes now. A training that fails or
        hangs says nothing; a step will name it."""
        if self.training and self.left() > 1:
            done = self.processes.run(self.training(), min(self.base_limit, self.left()), self.environment, self.folder)
            if done.status == 0:
                self.pace = max(self.pace, done.seconds)
                self.limit = max(self.limit, self.base_limit * self.pace / PACE)

    def quern(self, *words, **how):
        return self.run(self.program, *words, **how)

    def works(self, done, what):
        """Whether a command ended with 0; if not, the fault says how it ended."""
        if done.status == 0:
            return True
        self.fault(f"{what}: {done.how_it_ended()}", done.last_lines())
        if done.status is None:
            with self.lock:
                self.step.hangs += 1
                if self.step.hangs >= MOST_HANGS:
                    raise StepEnds(f"{MOST_HANGS} commands did not end")
        return False

    def each(self, jobs, work, together=1):
        """work(job) for each job, so many at the same time, with progress. What is too slow is left out,
        and a step that ends leaves out the rest."""
        done, slow = 0, 0
        with ThreadPoolExecutor(together) as pool:
            begun = [pool.submit(work, job) for job in jobs]
            try:
                for one in as_completed(begun):
                    try:
                        one.result()
                        done += 1
                    except TooSlow as why:
                        slow += 1
                        if slow >= MOST_HANGS:
                            raise StepEnds(str(why)) from why
                    self.progress(done, len(begun))
            except BaseException as why:
                for one in begun:
                    one.cancel()
                if isinstance(why, StepEnds):  # those that run go on, and may be right
                    wait(begun)
                    done = sum(not one.cancelled() and one.exception() is None for one in begun)
                    why.what = f"{len(begun) - done} of {len(begun)}"
                raise
        if slow:
            self.step.left_out.append(f"{slow} of {len(begun)}")

    # ---- what the user sees

    def say(self, text):
        if sys.stdout.isatty():
            sys.stdout.write("\r\033[K")
        print(text, flush=True)

    def progress(self, done, total):
        now, step = time.monotonic(), self.step
        text = f"  {done} of {total}" + (f", {step.faults} faults" if step.faults else "")
        if sys.stdout.isatty():
            sys.stdout.write(f"\r\033[K{text}")
            sys.stdout.flush()
        elif now - self.told >= TOLD_EVERY and done < total:
            self.told = now
            print(text, flush=True)

    def perform(self, name, title, seconds, later, work):
        """One step; what goes wrong in it is a fault of it, and the next one follows. It has at most
        `seconds` of ten minutes, and little more than its share of the time that is left for it and the
        `later` seconds of others."""
        step = StepResult(name, title)
        self.results.append(step)
        begun = self.told = time.monotonic()
        share = (self.deadline - begun) * seconds / (seconds + later)
        self.ends = begun + min(seconds * max(1.0, self.seconds / 600), MOST_OF_SHARE * share)
        self.say(f"[{len(self.results):2} of {self.steps}] {title}")
        self.write_report()
        try:
            if self.left() <= 0:
                raise StepEnds("time is over")
            work(self)
            step.outcome = "done"
        except StepEnds as why:
            step.outcome = str(why)
            step.left_out.append(why.what or "a part" if step.passed else "all of it")
        except Exception as error:  # a fault of this program must not end the check
            step.outcome = "ended early"
            self.fault(f"the check itself: {type(error).__name__}: {error}")
        step.seconds = time.monotonic() - begun
        parts = [f"{step.passed} right"] + ([f"{step.faults} WRONG"] if step.faults else [])
        if step.outcome != "done":
            parts.append(step.outcome)
        if step.left_out:
            parts.append(f"not done: {', '.join(step.left_out)}")
        self.say(f"  {', '.join(parts)}, {step.seconds:.0f} s")
        self.write_report()

    # ---- the report

    def judge(self, stopped=""):
        """The verdict: one line."""
        passed = sum(step.passed for step in self.results)
        took = f"{time.monotonic() - self.begun:.0f} s"
        left = [f"{step.name} ({', '.join(step.left_out)})" for step in self.results if step.left_out]
        slow = f"; the device is slow: a small training takes {self.pace:.0f} s" if self.limit > self.base_limit else ""
        if stopped:
            self.verdict = f"STOPPED: {stopped}; {passed} checks were right, {len(self.faults)} wrong"
        elif self.faults:
            named = "; ".join(dict.fromkeys(f"{step}: {shorter(what)}" for step, what, _ in self.faults[:3]))
            more = f"; and {len(self.faults) - 3} more" if len(self.faults) > 3 else ""
            self.verdict = (f"FAILED on {self.device}: {len(self.faults)} faults, {passed} checks were right, "
                            f"{took}: {named}{more}")
        elif passed == 0:
            self.verdict = f"NOTHING was checked on {self.device}, {took}"
        else:
            notes = f", {len(self.notes)} notes" if self.notes else ""
            self.verdict = (f"{'NOT COMPLETE' if left else 'PASSED'} on {self.device}: all {passed} checks were right"
                            f"{notes}, {took}")
        if left and not stopped:
            self.verdict += f"; not done: {', '.join(left)}"
        self.verdict += "" if stopped else slow
        self.write_report()
        return self.scrub.text(self.verdict)

    def write_report(self):
        text = self.scrub.text(self.text_of_report())
        if self.scrub.left(text):  # joined by what stood between them
            text = self.scrub.text(text)
        part = self.report.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.rename(self.report)

    def text_of_report(self):
        lines = ["Quern gpu-check, report format 1", ""]
        lines.append(f"verdict: {self.verdict or 'IN PROGRESS: the machine or the check stopped in the last step below'}")
        lines += ["", "---- machine", *(f"{what}: {text}" for what, text in self.facts)]
        lines += ["", "---- steps", f"{'step':<12} {'right':>6} {'wrong':>6} {'s':>5}  how it ended"]
        lines += [f"{s.name:<12} {s.passed:>6} {s.faults:>6} {s.seconds:>5.0f}  {s.outcome}"
                  + (f"; not done: {', '.join(s.left_out)}" if s.left_out else "") for s in self.results]
        if self.faults:
            lines += ["", "---- faults"]
        for number, (step, what, detail) in enumerate(self.faults, 1):
            lines.append(f"{number}. {step}: {what}")
            lines += [f"     {line}" for line in detail.splitlines()]
        if self.notes:
            lines += ["", "---- notes", *(f"{step}: {text}" for step, text in self.notes)]
        if self.measures:
            lines += ["", "---- measured", *(f"{what}: {text}" for what, text in self.measures)]
        return "\n".join(lines) + "\n"
