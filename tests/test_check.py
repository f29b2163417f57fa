"""make check FILE=...: which tests concern a file. (They themselves run here anyway.)"""

import subprocess
import sys

import pytest

from builds import ROOT


@pytest.mark.parametrize("file, tests", [
    ("src/base/text/json.c", ["base.text.json"]),  # others include its header too
    ("src/data/table/dates.c", ["data.table.dates", "tests/test_dates.py"]),
    ("src/data/columnar/parquet_pages.c", ["tests/test_parquet_pages.py"]),
    ("src/userkernel/execution/user_scan.c", ["userkernel.execution.user_scan", "tests/test_kernel.py"]),
    ("src/layer/conv.c", ["layer.window", "layer.reference"]),  # it has none of its own
    ("app/plan_command.c", ["tests/test_plan.py"]),
    ("tests/test_csv.py", ["tests/test_csv.py"])])
def test_what_concerns_a_file(file, tests):
    done = subprocess.run([sys.executable, ROOT / "scripts" / "check.py", "--list", file], capture_output=True,
                          text=True, check=True)
    assert set(tests) <= set(done.stdout.split()) and len(done.stdout.split()) < 25


def test_a_file_that_is_not_there():
    done = subprocess.run([sys.executable, ROOT / "scripts" / "check.py", "src/base/absent.c"],
                          capture_output=True, text=True)
    assert done.returncode == 1 and "was not found" in done.stderr
