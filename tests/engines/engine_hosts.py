"""Engines on several hosts, which are namespaces of this machine (tests/hosts.py)."""

import os
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import hosts  # noqa: E402

PROGRAMS = Path(sys.executable).parent


class Hosts(hosts.Hosts):
    """Hosts with programs of this environment, which end with them."""

    def start(self, i, program, *words, **environment):
        """A program on host i, and what it prints."""
        return subprocess.Popen(self.on(i, [PROGRAMS / program, *words]), preexec_fn=hosts.die_with_parent, text=True,
                                stdout=subprocess.PIPE, env={**os.environ, **environment})

    def last_line(self, driver, epoch, what):
        """The last line of a driver that prints the number of each epoch. After one of them calls `what`."""
        line = None
        for line in driver.stdout:
            if line.strip() == str(epoch):
                what()
        assert driver.wait() == 0
        return line.strip()
