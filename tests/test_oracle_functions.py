"""The functions of user kernels against a second program, written from section 21 of the contract."""

import re
import sys

import pytest

from builds import ROOT

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import functions  # noqa: E402

TEXT = (ROOT / "docs" / "exactness.md").read_text()
SECTION = TEXT[TEXT.index("## 21. "):]
CHAINS = {row[0]: row[1:] for row in re.findall(
    r"^\| `(\w+)` \| `([0-9a-f]{16})` \| `([0-9a-f]{16})` \| `([0-9a-f]{16})` \| `([0-9a-f]{16})` \|$",
    SECTION, re.M)}


def test_the_text_has_the_chains_of_the_c_test():
    header = (ROOT / "src" / "kernels" / "runtime" / "function_samples_test.h").read_text()
    rows = re.findall(r"ROW\((\w+),\s*0x(\w+),\s*0x(\w+),\s*0x(\w+),\s*0x(\w+)\)", header)
    assert len(rows) == 24 and {name: tuple(chains) for name, *chains in rows} == CHAINS


@pytest.mark.parametrize("name", CHAINS)
def test_the_text_defines_each_bit(name):
    for k, kind in enumerate(functions.formats(SECTION)):
        assert f"{kind.chain(name, 64):016x}" == CHAINS[name][2 * k], (name, kind.width)
