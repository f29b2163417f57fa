"""The rules of the house, read off the tree itself.

Each rule is a function from a tree to a list of complaints; one test asks that the project has
none, and one, on a made-up tree, that the rule does complain where it is broken.
"""

import ast
import re
import shutil
import subprocess
from collections import defaultdict

import pytest

from builds import ROOT

# The floors and rooms of src/, lowest first, and who may include whom.
MAP = "docs/map.md"
C_FILES = {".c", ".h", ".inc", ".cl"}
CODE_FILES = C_FILES | {".py", ".sh", ".cmake"}
MOST_LINES = 800
GENERATED = {"build_info.h", "kernel_text.h", "try_page_text.h", "user_lanes_text.h", "user_text.h"}

# What may not appear is put together from pieces, so that this file does not contain it.
FLAGS = re.compile("|".join(["-f" "fast-math", "-O" "fast", "cl-fast" "-relaxed", "cl-mad" "-enable",
                             "use_fast" "_math", "fp-contract" "=fast", "fmad" "=true",
                             "-funsafe" "-math", "-fassociative" "-math"]))
WORDS = re.compile(r"\b(" + "|".join(["TO" "DO", "FIX" "ME", "X" "XX", "HA" "CK", "for" " now",
                                      "simp" "lified", "place" "holder", "not" " implemented"])
                   + r")\b")
PLACES = re.compile("|".join(["/wo" "rk/", "/ro" "ot/", r"/ho" r"me/\w", "/Us" "ers/", "py" "pi[.]org",
                              "deb[.]deb" "ian", "files[.]python" "hosted"]))
ENDS_OR_PRINTS = re.compile(r"(?<![\w.>])(exit|_exit|abort|assert|printf|puts|putchar|perror|vprintf)"
                            r"\s*\(|(?<!\w)(stdout|stderr)(?!\w)")
VENDOR_MATH = re.compile(r"(?<![\w.>])(exp|exp2|expm1|log|log2|log10|log1p|pow|sin|cos|tan|sinh|cosh"
                         r"|asin|acos|tanh|erfc?|cbrt|hypot|tgamma|lgamma)[fl]?\s*\(")

UNCHECKED = re.compile(r"(?<![\w.>])(ato[ifl]|atoll|gets|alloca)\s*\(")


def tracked(root):
    """Every file that git keeps or would keep under root; without git, every file."""
    if (root / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=root,
                                capture_output=True, check=True).stdout.decode()
        files = [root / name for name in listed.split("\0") if name]
    else:
        files = root.rglob("*")
    return sorted(f for f in files if f.is_file())


def lines_of(path):
    """The lines of a text file; none for a binary one."""
    data = path.read_bytes()
    return [] if b"\0" in data else data.decode("utf-8", "replace").splitlines()


def code_of(path):
    """The lines of a C file with comments, strings and characters blanked out."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    text = "\n".join(lines_of(path))
    text = re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", blank, text,
                  flags=re.DOTALL)
    return text.splitlines()


def found(root, files, pattern, complaint, read=lines_of):
    return [f"{f.relative_to(root)}:{n}: {complaint}: {m[0].strip()}"
            for f in files for n, line in enumerate(read(f), 1)
            for m in [pattern.search(line)] if m]


# ---------------------------------------------------------------- who may include whom

def home_of(path):
    """('device', 'cpu', 'float') for device/cpu/float/kernel.h: the floor, and the folders on it."""
    return tuple(path.split("/")[:-1])


class Plan:
    """The table of docs/map.md: folders in their order, the headers that are the door of each, and
    the folders of its own floor that each may use."""

    def __init__(self, text):
        self.doors, self.uses = {}, {}
        for row in re.findall(r"^\| `([a-z/]+)` \| .* \| ([^|]+) \| ([^|]+) \|$", text, re.M):
            names = lambda cell: set(re.findall(r"`([^`]+)`", cell))
            self.doors[row[0]] = None if row[1] == "any" else names(row[1])
            self.uses[row[0]] = names(row[2])
        self.floors = list(dict.fromkeys(folder.split("/")[0] for folder in self.doors))

    def may_include(self, here, name, is_test):
        """Whether a file at home `here` may include the header src/`name`. A test may use all of its
        floor and of those before."""
        there = home_of(name)
        if here[0] == "app":
            return there[0] in ("app", "quern")
        if here[0] not in self.floors or there[0] not in self.floors:
            return False
        if here[0] != there[0]:
            door = self.doors.get("/".join(there), set())
            lower = self.floors.index(there[0]) < self.floors.index(here[0])
            return lower and (is_test or door is None or name.split("/")[-1] in door)
        if is_test or there[:len(here)] == here:
            return True  # what is included lies in the same folder, or below it
        return "/".join(there) in self.uses.get("/".join(here), ())


PLAN = Plan((ROOT / MAP).read_text())


def wrong_includes(root):
    wrong = []
    for base in ("include", "src", "app"):
        for path in sorted((root / base).rglob("*")):
            if path.suffix not in C_FILES:
                continue
            inside = str(path.relative_to(root / base))
            here = home_of("app/" + inside if base == "app" else inside)
            for n, line in enumerate(lines_of(path), 1):
                match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
                if match:
                    reason = include_fault(root, path, here, match[1], match[2])
                    if reason:
                        wrong.append(f"{path.relative_to(root)}:{n}: includes {match[2]}: {reason}")
    return wrong


def include_fault(root, path, here, bracket, name):
    """Why this include is wrong, or None."""
    if name.startswith("quern/"):
        if not (root / "include" / name).exists():
            return "there is no such public header"
        return None
    if bracket == "<":
        return None  # the system's
    if name in GENERATED:
        return "a public header includes nothing internal" if here[0] == "quern" else None
    if ".." in name.split("/"):
        return "paths are written from src/"
    if here[0] == "app" and "/" not in name and (root / "app" / name).exists():
        return None
    is_test = path.name.endswith(("_test.c", "_test.h"))
    if is_test and (root / "tests" / name).exists():
        return None
    if not (root / "src" / name).exists():
        beside = (path.parent / name).exists()
        return "write its path from src/" if beside else "there is no such header in src/"
    if not PLAN.may_include(here, name, is_test):
        return f"{'/'.join(filter(None, here))} may not use {name}; {MAP} has the rules"
    return None


def test_includes():
    assert not wrong_includes(ROOT)


def made_up(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


HEADERS = {name: "" for name in [
    "include/quern/status.h", "src/base/error.h", "src/num/sums.h", "src/device/device.h",
    "src/device/cpu/cpu.h", "src/device/cpu/float/kernels.h", "src/device/cpu/worker/worker.h",
    "src/device/gpu/gpu.h", "tests/fake_device/fake_device.h", "src/cluster/cluster.h",
    "src/cluster/transport/transport.h", "src/cluster/rendezvous/rendezvous.h",
    "src/cluster/membership/view.h", "src/cluster/reduction/reduction.h", "src/team/team.h", "src/data/table/data.h",
    "src/report/record/record.h", "app/args.h"]}


@pytest.mark.parametrize("file, include", [
    ("src/base/error.c", '"base/error.h"'),
    ("src/base/error.c", "<quern/status.h>"),
    ("src/base/error.c", "<stdio.h>"),
    ("src/train/trainer.c", '"team/team.h"'),
    ("src/job/train_job.c", '"data/table/data.h"'),
    ("src/device/registry.c", '"device/cpu/cpu.h"'),
    ("src/device/cpu/cpu.c", '"device/cpu/cpu.h"'),
    ("src/device/registry.c", '"device/cpu/worker/worker.h"'),
    ("src/device/cpu/worker/worker.c", '"device/device.h"'),
    ("src/device/cpu/worker/worker.c", '"device/cpu/float/kernels.h"'),
    ("src/device/opencl/opencl.c", '"device/gpu/gpu.h"'),
    ("src/cluster/cluster.c", '"cluster/rendezvous/rendezvous.h"'),
    ("src/cluster/reduction/reduction.c", '"cluster/membership/view.h"'),
    ("src/cluster/membership/view.c", '"cluster/transport/transport.h"'),
    ("src/cluster/transport/transport_test.c", '"cluster/rendezvous/rendezvous.h"'),
    ("src/device/conformance_test.c", '"fake_device/fake_device.h"'),
    ("src/report/record/record.c", '"build_info.h"'),
    ("app/main.c", '"args.h"'),
    ("app/main.c", "<quern/status.h>"),
])
def test_includes_allowed(tmp_path, file, include):
    made_up(tmp_path, {**HEADERS, file: f"#include {include}\n"})
    assert wrong_includes(tmp_path) == []


@pytest.mark.parametrize("file, include", [
    ("include/quern/train.h", '"base/error.h"'),
    ("include/quern/train.h", '"build_info.h"'),
    ("include/quern/train.h", "<quern/absent.h>"),
    ("src/base/error.c", '"num/sums.h"'),
    ("src/num/sums.c", '"device/device.h"'),
    ("src/data/table/table.c", '"report/record/record.h"'),
    ("src/device/cpu/cpu.c", '"device/gpu/gpu.h"'),
    ("src/device/registry.c", '"fake_device/fake_device.h"'),
    ("src/team/team.c", '"device/cpu/cpu.h"'),
    ("src/device/cpu/tile.inc", '"team/team.h"'),
    ("src/device/cpu/float/kernels.c", '"device/cpu/worker/worker.h"'),
    ("src/device/cpu/worker/worker.c", '"device/gpu/gpu.h"'),
    ("src/device/gpu/gpu.c", '"device/cpu/cpu.h"'),
    ("src/cluster/transport/socket.c", '"cluster/rendezvous/rendezvous.h"'),
    ("src/cluster/membership/view.c", '"cluster/rendezvous/rendezvous.h"'),
    ("src/cluster/membership/view.c", '"cluster/reduction/reduction.h"'),
    ("src/cluster/rendezvous/rendezvous.c", '"cluster/membership/view.h"'),
    ("src/cluster/reduction/reduction.c", '"cluster/rendezvous/rendezvous.h"'),
    ("src/cluster/reduction/reduction.c", '"cluster/cluster.h"'),
    ("src/cluster/transport/transport_test.c", '"team/team.h"'),
    ("src/team/team.c", '"device/cpu/worker/worker.h"'),
    ("src/base/error.c", '"../num/sums.h"'),
    ("src/base/other.c", '"error.h"'),
    ("src/base/error.c", '"base/absent.h"'),
    ("src/base/error.c", '"app/args.h"'),
    ("app/main.c", '"base/error.h"'),
    ("app/main.c", '"absent.h"'),
])
def test_includes_refused(tmp_path, file, include):
    made_up(tmp_path, {**HEADERS, file: f"\n  # include {include}\n"})
    complaints = wrong_includes(tmp_path)
    assert len(complaints) == 1 and complaints[0].startswith(f"{file}:2: ")


def circles(folders):
    """Of tables of who uses whom: those that, over whatever others, use themselves."""
    def reach(table, name, seen):
        for other in set(table.get(name, ())) - seen:
            seen |= {other} | reach(table, other, seen | {other})
        return seen
    return [f"{above}/{name}" for above, table in folders.items() for name in table
            if name in reach(table, name, set())]


def test_folders():
    assert not circles({"src": PLAN.uses})
    assert not [name for name in PLAN.doors if not (ROOT / "src" / name).is_dir()]
    known = [str(f.parent.relative_to(ROOT / "src")) for f in (ROOT / "src").rglob("*.c")]
    assert not set(known) - set(PLAN.doors)
    absent = [f"{folder}/{name}" for folder, door in PLAN.doors.items() for name in door or ()
              if not (ROOT / "src" / folder / name).exists()]
    assert not absent


def test_the_map_names_what_is_there():
    text = (ROOT / MAP).read_text()
    named = re.findall(r"(?<![\w/])(?:src|app|tests)/[\w./]+", text)
    assert len(named) > 80 and not [name for name in named if not (ROOT / name.rstrip(".")).exists()]
    firsts = re.findall(r"^\| ([^|]+) \|", text, re.M)
    assert not [first for first in set(firsts) - {"---"} if firsts.count(first) > 1]


def test_folders_refused():
    assert circles({"a": {"b": ["c"], "c": ["d"]}}) == []
    assert circles({"a": {"b": ["c"], "c": ["d"], "d": ["b"]}}) == ["a/b", "a/c", "a/d"]


DEFINED = re.compile(r"^(?!static|typedef|extern|struct|enum|#)\w[^;{}()=]*?\b(\w+)\s*"
                     r"(?:\([^;{}]*\)\s*\{|(?:\[[^\]]*\])*\s*=)", re.MULTILINE)


def calls_of(folder):
    """Of each C file of a folder the others whose functions or objects it uses."""
    texts = {f.name: "\n".join(code_of(f)) for f in sorted(folder.glob("*.c"))
             if not f.name.endswith("_test.c")}
    ours = r"\b\w+" if folder.name == "app" else r"\bqn_\w+"  # the library's names have a prefix
    home = {name: file for file, text in texts.items() for name in DEFINED.findall(text)
            if re.fullmatch(ours, name)}
    return {file: sorted({home[n] for n in re.findall(ours, text) if n in home} - {file})
            for file, text in texts.items()}


def calling_circles(root, folders):
    return [name for folder in folders for path in (root / "src" / folder, root / folder)
            for name in circles({folder: calls_of(path)})]


def imports_of(package):
    """Of each module of a package the others that it imports, at its top or in a function."""
    found = {f.stem: set() for f in sorted(package.glob("*.py"))}
    for name, others in found.items():
        for node in ast.walk(ast.parse((package / f"{name}.py").read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                others |= {node.module} if node.module else {alias.name for alias in node.names}
    return {name: sorted(others & set(found)) for name, others in found.items()}


def test_imports():
    assert not circles({"python/quern": imports_of(ROOT / "python" / "quern")})


def test_imports_refused(tmp_path):
    made_up(tmp_path, {"quern/a.py": "from . import b\nfrom .c import d\n", "quern/b.py": "from ._abi import e\n",
                       "quern/c.py": "import os\n"})
    assert circles({"quern": imports_of(tmp_path / "quern")}) == []
    made_up(tmp_path, {"quern/c.py": "def f():\n    from .a import g\n"})
    assert circles({"quern": imports_of(tmp_path / "quern")}) == ["quern/a", "quern/c"]


def test_calls():
    """Each file is one responsibility, not a part of another one that became too long."""
    assert not calling_circles(ROOT, [*PLAN.doors, "app"])


def test_calls_refused(tmp_path):
    made_up(tmp_path, {
        "src/team/a.c": "int qn__a(int x) {\n    return qn__b(x) + qn__table[0]; // qn__c\n}\n",
        "src/team/b.c": "int qn__b(int x);\nint qn__b(int x) { return x > 1 ? qn__c(x) : 0; }\n",
        "src/team/c.c": "int qn__c(\n    int x) {\n    return x;\n}\n",
        "src/team/d.c": "static int a(int x) { return x; }\nconst int qn__table[2] = {1, 2};\n"})
    assert calling_circles(tmp_path, ["team"]) == []
    made_up(tmp_path, {"src/team/c.c": "int qn__c(int x) {\n    return qn__a(x);\n}\n"})
    assert calling_circles(tmp_path, ["team"]) == ["team/a.c", "team/b.c", "team/c.c"]
    made_up(tmp_path, {"app/a.c": "int one(void) {\n    return two;\n}\n", "app/b.c": "int two = one();\n"})
    assert calling_circles(tmp_path, ["app"]) == ["app/a.c", "app/b.c"]


def folders_off_the_plan(root):
    return [f"src/{d.name}" for d in sorted((root / "src").iterdir())
            if d.is_dir() and d.name not in PLAN.floors]


def test_floors():
    assert not folders_off_the_plan(ROOT)


def test_floors_refused(tmp_path):
    made_up(tmp_path, {"src/base/error.c": "", "src/utils/stuff.c": ""})
    assert folders_off_the_plan(tmp_path) == ["src/utils"]


# ---------------------------------------------------------------- names and lengths

def long_files(root):
    """Files over 800 lines whose first comment does not say "long because"."""
    return [f"{f.relative_to(root)}: {len(lines)} lines" for f in tracked(root)
            if f.suffix in CODE_FILES for lines in [lines_of(f)]
            if len(lines) > MOST_LINES
            and not re.search(r"\blong\s+because\b", re.sub(r"[\s*#/]+", " ", "\n".join(lines[:40])))]


def test_lengths():
    assert not long_files(ROOT)


def test_lengths_refused(tmp_path):
    body = "int x;\n" * 801
    made_up(tmp_path, {"src/base/a.c": body, "src/base/b.c": "\n" * 800,
                       "src/base/c.c": "/* A table; long\n * because it is one. */\n" + body})
    assert long_files(tmp_path) == ["src/base/a.c: 801 lines"]


def shared_names(root):
    places = defaultdict(list)
    for f in sorted((root / "src").rglob("*")):
        if f.is_file() and f.name != "README.md":
            places[f.name].append(str(f.relative_to(root)))
    return [" ".join(p) for p in places.values() if len(p) > 1]


def test_names():
    assert not shared_names(ROOT)


def test_names_refused(tmp_path):
    made_up(tmp_path, {"src/base/error.c": "", "src/data/text/error.c": "", "src/data/text/csv.c": ""})
    assert shared_names(tmp_path) == ["src/base/error.c src/data/text/error.c"]


# ---------------------------------------------------------------- what may not be written

def wrong_flags(root):
    """Flags that let a compiler change arithmetic. Documents may speak of them."""
    return found(root, [f for f in tracked(root) if f.suffix != ".md"], FLAGS,
                 "breaks the exactness contract")


def wrong_words(root):
    return found(root, tracked(root), WORDS, "reads like unfinished work")


def wrong_places(root):
    return found(root, tracked(root), PLACES, "names a place of one machine")


def library_files(root):
    """The files under src/ that are compiled into the library, which tests and oracles are not."""
    return [f for f in sorted((root / "src").rglob("*")) if f.suffix in C_FILES
            and not f.name.endswith(("_test.c", "_test.h", "_mpfr.h"))]


def unchecked_calls(root):
    """Calls that believe their input."""
    programs = [f for f in sorted((root / "app").rglob("*")) if f.suffix in C_FILES]
    return found(root, library_files(root) + programs, UNCHECKED,
                 "cannot tell of an error or of a size", code_of)


def wrong_calls(root):
    return (found(root, library_files(root), ENDS_OR_PRINTS, "the library never ends or prints",
                  code_of)
            + found(root, library_files(root), VENDOR_MATH,
                    "the C library's bits vary; use src/num", code_of))


@pytest.mark.parametrize("rule", [wrong_flags, wrong_words, wrong_places, wrong_calls,
                                  unchecked_calls])
def test_writing(rule):
    assert not rule(ROOT)


@pytest.mark.parametrize("rule, text", [
    (wrong_flags, "set(CMAKE_C_FLAGS -f" "fast-math)"),
    (wrong_flags, "-O" "fast"),
    (wrong_words, "// TO" "DO: mend"),
    (wrong_words, "// it is enough for" " now"),
    (wrong_places, "open(\"/wo" "rk/x\")"),
    (wrong_calls, "void f(void) { exit(1); }"),
    (wrong_calls, "void f(void) { fprintf(stderr, \"x\"); }"),
    (wrong_calls, "float f(float x) { return expf(x); }"),
    (unchecked_calls, "int f(char *s) { return atoi(s); }"),
    (unchecked_calls, "p = alloca (n);"),
    (wrong_calls, "int c = '\"'; double y = tanh (x); // \""),
])
def test_writing_refused(tmp_path, rule, text):
    made_up(tmp_path, {"src/base/a.c": f"\n{text}\n"})
    complaints = rule(tmp_path)
    assert len(complaints) == 1 and complaints[0].startswith("src/base/a.c:2: ")


@pytest.mark.parametrize("text", [
    "/* exit(1) in a comment, expf(x) too */", 'const char *s = "exit(1)";', "// stderr",
    "float f(float x) { return qn_exp(x) + t->exp(x) + sqrtf(x); }", 'snprintf(s, 3, "a");',
    "_Static_assert(sizeof(float) == 4, \"float\");",
])
def test_writing_allowed(tmp_path, text):
    made_up(tmp_path, {"src/base/a.c": f"{text}\n"})
    assert wrong_calls(tmp_path) == []


# ---------------------------------------------------------------- the floating-point state

# Public functions that compute nothing with floats: questions about what is there, defaults, a
# wish to stop (which a signal handler may make), and what only frees memory.
NO_FLOATS = re.compile(
    r"qn_(version|build_info|status_name|train_stop|epoch_keep|files_abandon|file_bytes_free|plan_report_of"
    r"|predictions_(correct|run)|writes_to_database|summary_find|train_option|choice_(about|name|near|takes|lacks)"
    r"|kernel_stop|server_(stop|reload|address)|(train|data|plan|cluster|report|search|lr_range)_options_init|data_arrays_init|(model|plan|predictions|evaluation|import_config|lr_range)_free|import_config_get"
    r"|statistics_(options_init|free|columns?|quantiles|categories|edges|histogram|covariance"
    r"|correlation)"
    r"|watch_(stop|free|options_init)|parts_(close|items|first|own|range|digest|class_items)|data_parts"
    r"|tokenizer_(free|kind|size|unknown|frame|json|digest)|tokens_(count|numbers|free)"
    r"|search_(stop|done|close|metric_name)|runs_(count|close)|cluster_(rank|ranks|alive|local|name|is_writer|stop)"
    r"|description_(free|format|files|items|columns|name|type|may_miss)"
    r"|data_(write_format|close|items|texts|item_(name|words)|features|inputs|type_of|values|labels|classes|digest|image_(size|channels)|format"
    r"|feature_(name|type)|label_name|class_name|note|targets?|weights|weight_name|categories|category)|model_(recipe|resize|digest|categories|inputs|outputs|layers|parameters|tensor"
    r"|(feature|class|label|weight)_name))")


def body_of(name, sources):
    """The text of the function's definition, or an empty one."""
    head = re.compile(rf"^\w[^;{{}}()=]*\b{name}\([^;{{}}]*\)\s*{{", re.MULTILINE)
    for text in sources:
        match = head.search(text) if f"{name}(" in text else None
        if match:
            return re.split(r"^}", text[match.end():], maxsplit=1,
                            flags=re.MULTILINE)[0]
    return ""


def lost_float_states(root):
    """Public functions and threads that would compute in whatever state their caller left."""
    sources = ["\n".join(code_of(f)) for f in library_files(root)]
    public = {name for f in (root / "include").rglob("*.h")
              for name in re.findall(r"\b(qn_\w+)\([^*]", "\n".join(code_of(f)))}
    started = {name for text in sources
               for name in re.findall(r"(?:pthread_create|qn__thread_start)\([^,]+,[^,]+,\s*(\w+),", text)
               if name != "body"}  # what qn__thread_start hands on
    return ([f"{name} lacks QN__OWN_FLOATS" for name in sorted(public)
             if not NO_FLOATS.fullmatch(name) and "QN__OWN_FLOATS" not in body_of(name, sources)]
            + [f"thread {name} lacks qn__float_state_set" for name in sorted(started)
               if "qn__float_state_set" not in body_of(name, sources)])


def test_float_states():
    assert not lost_float_states(ROOT)


def test_float_states_refused(tmp_path):
    made_up(tmp_path, {
        "include/quern/model.h": "int qn_model_load(int a,\n    int b);\nint qn_model_save(int a);\n"
                                 "int qn_model_inputs(const int *m);\n",
        "src/model/model.c": "int qn_model_load(int a,\n    int b) {\n    return a;\n}\n"
                             "int qn_model_save(int a) {\n    QN__OWN_FLOATS;\n    return a;\n}\n"
                             "static void *work(void *p) {\n    return p;\n}\n"
                             "int go(void) {\n    return qn__thread_start(&t, NULL, work, t);\n}\n"})
    assert lost_float_states(tmp_path) == ["qn_model_load lacks QN__OWN_FLOATS",
                                           "thread work lacks qn__float_state_set"]


# ---------------------------------------------------------------- what git keeps

def kept_links(root):
    """Symbolic links that git keeps. One that leaves the tree names a place of one machine, and a
    checkout of it replaces what git ignores there."""
    if not ((root / ".git").exists() and shutil.which("git")):
        return []
    listed = subprocess.run(["git", "ls-files", "-sz"], cwd=root, capture_output=True,
                            check=True).stdout.decode()
    return [f"{entry.split(chr(9))[1]}: git keeps a symbolic link" for entry in listed.split("\0")
            if entry.startswith("120000 ")]


def test_links():
    assert not kept_links(ROOT)


def test_links_refused(tmp_path):
    if not shutil.which("git"):
        pytest.skip("there is no git")
    (tmp_path / "file").write_text("text\n")
    (tmp_path / "link").symlink_to(tmp_path)
    for command in (["init", "-q"], ["add", "file", "link"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    assert kept_links(tmp_path) == ["link: git keeps a symbolic link"]


# ---------------------------------------------------------------- the public headers

def public_functions(root):
    """The functions that the headers mark QN_API, which are those of the shared library."""
    names = set()
    for header in (root / "include" / "quern").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        names |= set(re.findall(r"\bQN_API\b[^;(]*?\b(qn_\w+)\(", text))
    return names


def wrong_exports(root):
    """Functions of the headers without QN_API, and differences from the list of versions, which is
    written by hand so that the list of a released version stays."""
    complaints = []
    for header in sorted((root / "include" / "quern").glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        text = re.sub(r"\bQN_API\b[^;]*;|\btypedef\b.*?;", "", text, flags=re.S)
        complaints += [f"{name} lacks QN_API" for name in re.findall(r"\b(qn_\w+)\(", text)]
    listed = set(re.findall(r"^    (qn_\w+);$", (root / "cmake" / "quern.map").read_text(), re.M))
    return complaints + [f"cmake/quern.map: {name}" for name in
                         sorted(listed ^ public_functions(root))]


def test_exports():
    assert not wrong_exports(ROOT)


def test_exports_refused(tmp_path):
    made_up(tmp_path, {"include/quern/a.h": "QN_API int *qn_a(int x,\n int y);\nint qn_b(void);\n"
                                            "/* qn_c(x) */ typedef int (*qn_d)(int a);\n",
                       "cmake/quern.map": "V {\nglobal:\n    qn_e;\nlocal:\n    *;\n};\n"})
    assert wrong_exports(tmp_path) == ["qn_b lacks QN_API", "cmake/quern.map: qn_a",
                                       "cmake/quern.map: qn_e"]


# ---------------------------------------------------------------- CONTRIBUTING.md

# Constants, rows and functions that stand wherever the arithmetic of a kind is.
KINDS = {"activation": r"(QN_+ACT_TANH|KIND\(TANH|activate_tanh)", "loss": r"(QN_+LOSS_MAE|SUM\(MAE)",
         "loss with its own activation": r"(QN_+LOSS_(CROSS_ENTROPY|BINARY)|OWN\(BINARY)",
         "optimiser": r"(QN_+OPT_(MOMENTUM|ADAM|ADAMW)|KIND\(ADAM|update_adamw)",
         "scaling": r"(QN_+SCALE_FRACTION|KIND\(FRACTION|qn_scale_fraction(_lanes)?)",
         "schedule": "QN_+SCHEDULE_(STEP|COSINE)",
         "initialisation": "QN_+INIT_(GLOROT|LECUN)",
         "option of train": r"smoothing",
         # Of the newest kind everything that has a name of its own: constant, members, kernels, words.
         "layer kind": r"(\w*((GROUP|LAYER|ITEM_)NORM|([gG]roup|[lL]ayer|item)_?norm(?!alise))\w*|norm_groups"
                       r"|QN_ITEM_\w+|item_(moments|slopes|normalise|errors))"}


@pytest.mark.parametrize("kind", KINDS)
def test_contributing_names_the_files_of_a_kind(kind):
    """The table names the files that use the constants: no more and no fewer."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    row = re.search(rf"^- {kind}: ((?:.|\n(?! *\n|- ))*)", text, re.M)[1]
    word = re.compile(rf"\b{KINDS[kind]}\b")
    outside = ("app", "include", "python") if kind == "option of train" else ()
    found = {str(f.relative_to(ROOT)) for folder in ("src", *outside) for f in (ROOT / folder).rglob("*")
             if f.suffix in {*C_FILES, ".py"} and not re.search("test|_vectors", f.name)
             and word.search(re.sub(r"/\*.*?\*/", "", f.read_text(), flags=re.S) if outside else f.read_text())}
    assert set(re.findall(r"`([^`]+)`", row)) == found - {"src/model/recipe/tables.c", "src/model/network/choice_table.c",
                                                          "src/model/network/ready.c", "src/model/exchange/pretrained_decoders.c",
                                                          "src/model/exchange/pretrained_encoders.c"}  # texts of models


def files_that_say(root, word, folders):
    """The files of these folders, tests and the text of comments apart, that match `word`."""
    return {str(f.relative_to(root)) for folder in folders for f in (root / folder).rglob("*")
            if f.suffix in CODE_FILES and not f.name.endswith(("_test.c", "_test.h"))
            and re.search(word, re.sub(r"/\*.*?\*/", "", f.read_text(), flags=re.S))}


@pytest.mark.parametrize("name", ["cpu/worker", "cuda", "opencl"])
def test_a_device_is_its_folder_and_a_row(name):
    """No other file names its table, or its kind. (The CPU's, which is always there, some may.)"""
    table = f"qn__{name.split('/')[0]}_device\\b" + ("" if "/" in name else f'|"{name}"')
    named = files_that_say(ROOT, table, ["src", "app", "include", "python/quern", "cmake"])
    assert {f for f in named if not f.startswith(f"src/device/{name}/")} == {"src/device/registry.c"}


def test_a_format_is_its_files_and_two_words():
    """One word makes the reader known, and one the writer. Help, lists, endings and Python ask the
    rows. What image folders leave out is a list of the contract."""
    named = files_that_say(ROOT, r'_json_(reader|format)\b|each\(json\)|NAMES\("json"|JSON lines|"\.?(jsonl|ndjson)"',
                           ["src", "include", "python/quern", "cmake"])
    assert {f for f in named if not f.startswith("src/data/json/") and f != "src/data/write/write_json.c"} == {
        "src/data/open/readers.c", "src/data/write/write_format.c", "src/data/images/image_clutter.c"}
    assert not files_that_say(ROOT, r'JSON lines|"\.?(jsonl|ndjson)"', ["app"])


@pytest.mark.parametrize("isa", ["neon", "dotprod"])
def test_an_instruction_set_is_its_files_and_two_rows(isa):
    named = files_that_say(ROOT, rf'_({isa}|{isa.upper()})\b|"{isa}"|\b{isa}\)',
                           ["src/device", "app", "cmake"])
    assert {f for f in named if not re.search(r"_(neon|dotprod)\.[ch]$", f)} == {
        "src/device/cpu/cpu_isa.c", "cmake/QuernInstructions.cmake"}


def test_contributing_names_files_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    names = {n for n in re.findall(r"`([\w./]+\.\w+|[\w./]+/)`", text) if n != ".cache/"}
    known = {f.name for f in tracked(ROOT)}
    assert [n for n in sorted(names) if not (ROOT / n).exists() and n not in known
            and "NAME" not in n] == []


PUBLIC = sorted((ROOT / "include" / "quern").glob("*.h"))


def misplaced_commands(folder):
    """The build makes a manual page of each file NAME_command.c for the command NAME."""
    wrong = []
    for file in sorted(folder.glob("*_command.c")):
        command = file.name.removesuffix("_command.c").replace("_", " ")
        names = re.findall(r"^const command \w+ = \{\s*\.name = \"(.*?)\"", file.read_text(), re.M)
        if names != [command]:
            wrong.append(f"{file.name} has the commands {names}, not {command!r} alone")
    return wrong


def test_a_command_has_the_file_of_its_name():
    assert misplaced_commands(ROOT / "app") == []


def test_a_file_of_two_commands_is_found(tmp_path):
    text = 'const command one = {\n    .name = "%s",\n'
    (tmp_path / "a_b_command.c").write_text(text % "a b")
    assert misplaced_commands(tmp_path) == []
    (tmp_path / "a_command.c").write_text(text % "a c" + text % "a d")
    assert len(misplaced_commands(tmp_path)) == 1


LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# Command lines that a message quotes whole, and options of compilers.
QUOTED = re.compile(r"mpirun |quern devices |^--(grain|shape|features) %u|^ --(arith|freeze) $|^ --(cache-features|recompute)$|--fmad|--gpu-architecture")


def wrong_spellings(root):
    """Messages of the library that name an option, or a field that app/fields.c cannot spell."""
    table = dict(option_fields(root))
    complaints = []
    for path in library_files(root):
        # Comments go, literals stay (code_of empties these).
        source = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), path.read_text(), flags=re.S)
        for number, line in enumerate(source.splitlines(), 1):
            for text in LITERAL.findall(line):
                names = re.findall(r"`(\w+\.[^`]*)`", text)
                if re.search(r"(?<![\w-])--[a-z]", text) and not QUOTED.search(text):
                    names.append("--")
                complaints += [f"{path.relative_to(root)}:{number}: {n}" for n in names
                               if n not in table]
    return complaints


def option_fields(root):
    """Fields of the library and the command's words for them."""
    rows = re.findall(r'\{"([a-z_0-9. ]+)", "([a-z0-9-]+)"\}', (root / "app" / "fields.c").read_text())
    table = root / "src" / "model" / "recipe" / "option_rows.c"
    own = re.findall(r'OPTION\((\w+), "([a-z0-9-]+)"', table.read_text()) if table.exists() else []
    return rows + [(f"train.{member}", option) for member, option in own]


def test_the_library_speaks_of_fields_and_the_command_of_options():
    assert not wrong_spellings(ROOT)
    rows = option_fields(ROOT)
    assert len(rows) > 100
    headers = "".join(h.read_text() for h in PUBLIC)
    options = "".join(f.read_text() for f in (ROOT / "app").glob("*.[ch]"))
    for field, option in rows:
        assert re.search(rf"\b{field.split('.')[1].split()[0]}\b", headers), field
        row = rf'(\.name = |ROW_\w+\(\s*)"{option}"'
        assert re.search(row, options) or field.startswith("train."), option


def test_wrong_spellings_are_found(tmp_path):
    made_up(tmp_path, {"src/a/a.c": 'f("use --lr");\nf("use `a.b` and `a.c`");\n',
                       "app/fields.c": '{"a.b", "b"}'})
    assert wrong_spellings(tmp_path) == ["src/a/a.c:1: --", "src/a/a.c:2: a.c"]


# They lie inside other structs by value, so they never change; <quern/status.h> says so. Those of
# Arrow are another project's.
FIXED = {"qn_error", "qn_score", "ArrowSchema", "ArrowArray", "ArrowArrayStream"}


def structs_without_size(root):
    """Structs of the public headers that could not grow, because they do not tell their size."""
    complaints = []
    for header in sorted((root / "include" / "quern").glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        complaints += [name for name, first in re.findall(r"struct (\w+) \{\s*([^;]*);", text)
                       if first != "size_t size" and name not in FIXED]
    return complaints


def test_structs_begin_with_their_size(tmp_path):
    assert not structs_without_size(ROOT)
    made_up(tmp_path, {"include/quern/a.h": "typedef struct qn_a {\n    int a;\n} qn_a;\n"
                                            "typedef struct qn_b { size_t size; } qn_b;\n"})
    assert structs_without_size(tmp_path) == ["qn_a"]


def test_null_is_tried_everywhere():
    """tests/null*_test.c call every public function that takes a pointer with NULL in it."""
    tried = "".join(path.read_text() for path in (ROOT / "tests").glob("null*_test.c"))
    for header in PUBLIC:
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for name, arguments in re.findall(r"\bQN_API\b[^;(]*?\b(qn_\w+)\(([^;]*)\);", text):
            assert "*" not in arguments or re.search(rf"\b{name}(\(|,)", tried), name


@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("header", PUBLIC, ids=lambda h: h.name)
def test_public_header_stands_alone(header, language, tmp_path):
    """A user may include any one header first, from C or from C++."""
    compiler = {"c": "gcc", "c++": "g++"}[language]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} not installed")
    source = tmp_path / "user"
    source.write_text(f"#include <quern/{header.name}>\nint user(void);\n")
    done = subprocess.run([compiler, "-x", language, "-Wall", "-Wextra", "-Werror",
                           *(["-std=c17", "-Wpedantic"] if language == "c" else ["-std=c++17"]),
                           "-fsyntax-only", f"-I{ROOT}/include", str(source)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
