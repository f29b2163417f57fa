"""Which sources can be compiled together, so that their common headers are read once.

Files of one group share no name of their own: no function, variable, type, enumerator or macro that
one of them or of its headers declares at file level means anything else in another. So each means in
the group what it means alone. `lines()` are the groups, one a line, for the option QUERN_GROUPS of
CMake. A name that is missed here does not compile, and then tests/builds.py builds
without groups.
"""

import functools
import re
import subprocess
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Text that other files must not see: pragmas, templates and what is compiled for one instruction set.
# Other targets take main() and what asks the processor out of the objects.
ALONE = re.compile(r'^\s*#\s*(pragma|undef)|^#include "[^"]*\.(inc|cl|c)"|^int main\('
                   r'|__builtin_cpu_supports', re.M)
FOR_ONE_SET = re.compile(r"_(avx2|avx512|vnni|amx|neon|dotprod)\.c$")
# Longer groups save little more, and one that takes long is waited for in the end.
LINES = 3000

NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.M)
SYSTEM_INCLUDE = re.compile(r"^\s*#\s*include <([^>]+)>", re.M)
MACRO = re.compile(r"^\s*#\s*define\s+(\w+)", re.M)
FUNCTION = r"^(?!typedef|struct \w+ {|enum|union|return|else)[A-Za-z_][\w \t*]*?\b(\w+)\("
VARIABLE = r"^(?:static|_Thread_local|const)\b[^(=;{]*?\b(\w+)[ \t]*(?:\[[^\]]*\]\s*)*(?:=|;|\{)"
TAG = r"^(?:static |const |typedef )*(?:struct|enum|union)\s+(\w+)"
TYPE = r"^}[ \t]*\**(\w+)"
DECLARED = re.compile("|".join((FUNCTION, VARIABLE, TAG, TYPE, r"^typedef\b[^;{(]*?\b(\w+)(?:\[[^;]*)?;",
                                r"^typedef\b[^;{]*\(\*?(\w+)\)\(")), re.M)
# What two headers cannot both declare.
DEFINED = re.compile("|".join((TAG + r"\s*\{", TYPE, r"^static\b[^;=]*?\b(\w+)\(",
                               r"^extern\b[^;(]*?\b(\w+)\s*(?:\[|;)")), re.M)
ENUM = re.compile(r"^(?:static |const |typedef )*enum\b[^{;]*\{([^}]*)\}", re.M)


def names(pattern, code):
    return {name for found in pattern.findall(code) for name in found if name}


class Text:
    """A source or a header: what it declares, and the words that it uses."""

    def __init__(self, path):
        self.path, text = path, path.read_text()
        self.lines, self.alone = text.count("\n"), bool(ALONE.search(text))
        code = NOT_CODE.sub(" ", text)
        self.macros = set(MACRO.findall(code))
        self.names = names(DECLARED, code)
        for values in ENUM.findall(code):
            self.names |= set(re.findall(r"(?:^|,)\s*(\w+)", values))
        self.defined = names(DEFINED, code)
        self.all_words = set(re.findall(r"\b[A-Za-z_]\w*", code))
        self.words = set(re.findall(r"(?<![.>\w])[A-Za-z_]\w*", code))  # without members of structs
        self.system = SYSTEM_INCLUDE.findall(text)
        self.includes = [found.resolve() for name in INCLUDE.findall(text)
                         for found in (path.parent / name, ROOT / "src" / name) if found.is_file()]


@functools.cache
def read(path):
    return Text(path)


def headers_of(source):
    found, ways = {}, list(source.includes)
    while ways:
        path = ways.pop()
        if path not in found:
            found[path] = read(path)
            ways += found[path].includes
    return list(found.values())


def words_of_system(texts):
    """The functions and macros of the system's headers that any of them includes."""
    headers = sorted({name for text in texts for name in text.system})
    asked = "".join(f"#if __has_include(<{h}>)\n#include <{h}>\n#endif\n" for h in headers)
    said = subprocess.run(["cc", "-D_GNU_SOURCE", "-E", "-dD", "-P", "-x", "c", "-"], input=asked,
                          capture_output=True, text=True, check=True).stdout
    return set(MACRO.findall(said)) | set(re.findall(r"\b([a-z]\w*) ?\(", said))


def enemies(sources):
    """For each source those with which it cannot be read, as bits."""
    uses, speaks, knows, macro = (defaultdict(int) for _ in range(4))
    defines = defaultdict(lambda: defaultdict(int))
    headers = [headers_of(source) for source in sources]
    for i, source in enumerate(sources):
        bit = 1 << i
        for where, what in ((uses, source.words), (speaks, source.all_words)):
            for word in what:
                where[word] |= bit
        for header in headers[i]:
            for word in header.names:
                knows[word] |= bit
            for word in header.macros:
                macro[word] |= bit
            for word in header.defined:
                defines[word][header.path] |= bit
    found = []
    for i, source in enumerate(sources):
        bit, mask = 1 << i, 0
        for name in source.names:
            mask |= uses[name] | (0 if knows[name] & bit else knows[name])
        for name in source.macros:
            mask |= speaks[name]
        for name in set().union(*(h.macros for h in headers[i])):
            mask |= speaks[name] & ~macro[name]
        found.append(mask)
    for where in defines.values():
        for path, users in where.items():
            others = functools.reduce(int.__or__, (u for p, u in where.items() if p != path), 0)
            for i in range(len(sources)):
                if users >> i & 1:
                    found[i] |= others
    # Enmity is mutual.
    for i in range(len(sources)):
        for k in range(i):
            if (found[i] >> k | found[k] >> i) & 1:
                found[i] |= 1 << k
                found[k] |= 1 << i
    return found


def groups(folder):
    """Lists of sources, by a greedy colouring: whoever has most enemies is placed first."""
    texts = [read(h) for top in ("src", "include", "app") for h in sorted((ROOT / top).rglob("*.h"))]
    of_headers = set().union(*(text.all_words for text in texts))
    found = [read(p) for p in sorted((ROOT / folder).rglob("*.c"))
             if not p.name.endswith("_test.c") and not FOR_ONE_SET.search(p.name)]
    of_system = words_of_system(texts + found)
    found = [s for s in found if not (s.alone or s.macros & of_headers or s.names & of_system)]
    hated = enemies(found)
    made = []  # [lines, members as bits]
    for i in sorted(range(len(found)), key=lambda i: (-hated[i].bit_count(), i)):
        for group in made:
            if group[0] + found[i].lines <= LINES and not hated[i] & group[1]:
                group[0] += found[i].lines
                group[1] |= 1 << i
                break
        else:
            made.append([found[i].lines, 1 << i])
    return [[s.path for i, s in enumerate(found) if members >> i & 1] for _, members in made]


def lines():
    made = groups("src") + groups("app")
    return "".join(" ".join(map(str, group)) + "\n" for group in made if len(group) > 1)
