"""Writes the module quern/_abi.py: structs, constants and functions of the library for ctypes.

    python generate_abi.py SOURCE_DIR _abi.py

They are read from the public headers, so they cannot differ from the library that is built from
the same headers. tests/test_python.py compares the result with the compiler's sizes and places.
"""

import re
import sys
from pathlib import Path

SCALARS = {"void": "None", "char": "C.c_char", "int": "C.c_int", "float": "C.c_float",
           "double": "C.c_double", "size_t": "C.c_size_t", "int32_t": "C.c_int32",
           "uint8_t": "C.c_uint8", "uint32_t": "C.c_uint32", "uint64_t": "C.c_uint64"}


def declarations(folder):
    """The text of all headers without comments and preprocessor lines."""
    text = "\n".join(h.read_text() for h in sorted(folder.glob("*.h")))
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return "\n".join(line for line in text.split("\n") if not line.startswith("#"))


def constants(text):
    """Names of enums, and the values of all their members."""
    names, values = set(), {}
    for body, name in re.findall(r"\benum(?: \w+)? \{(.*?)\}\s*(\w*);", text, re.S):
        names |= {name} - {""}
        value = -1
        for member in filter(None, (m.strip() for m in body.split(","))):
            key, _, given = (part.strip() for part in member.partition("="))
            value = int(given, 0) if given else value + 1
            values[key] = value
    return names, values


class Types:
    def __init__(self, text):
        self.enums, self.values = constants(text)
        self.structs = re.findall(r"\btypedef struct (\w+) \{(.*?)\n\} \w+;", text, re.S)
        self.known = {name for name, _ in self.structs}
        self.callbacks = re.findall(r"\btypedef (\w[\w ]*?)\(\*(\w+)\)\(([^;]*)\);", text)
        self.functions = re.findall(r"\bQN_API\b([^;(]*?)\b(qn_\w+)\(([^;]*)\);", text)

    def of(self, words, stars):
        """The ctypes expression of a C type with so many stars."""
        word = " ".join(w for w in words.split() if w not in ("const", "struct"))
        if word in {name for _, name, _ in self.callbacks}:
            return word
        if stars and word == "char":
            word, stars = "C.c_char_p", stars - 1
        elif stars and word not in SCALARS and word not in self.known:
            word, stars = "C.c_void_p", stars - 1  # opaque
        elif stars and word == "void":
            word, stars = "C.c_void_p", stars - 1
        elif word in self.enums:
            word = "C.c_int"
        else:
            word = SCALARS.get(word, word)
        return "C.POINTER(" * stars + word + ")" * stars

    def argument(self, text):
        text = text.strip()
        array = re.search(r"\[\w*\]$", text)
        text = re.sub(r"\[\w*\]$", "", text)
        match = re.fullmatch(r"([\w ]+?)\s*((?:\*\s*(?:const\s*)?)*)(\b[a-z_]\w*)?", text)
        return self.of(match[1], match[2].count("*") + bool(array))

    def callback(self, result, arguments):
        return f"C.CFUNCTYPE({', '.join([self.of(result, 0), *map(self.argument, split(arguments))])})"

    def fields(self, body):
        """Name and type of each member."""
        for line in filter(None, (part.strip() for part in body.split(";"))):
            function = re.fullmatch(r"(\w+)\s*\(\*(\w+)\)\((.*)\)", line, re.S)
            if function:
                yield function[2], self.callback(function[1], function[3])
                continue
            words, rest = re.fullmatch(r"((?:const )?\w+)\s+(.*)", line, re.S).groups()
            rest = re.sub(r"\bconst\b", "", rest)
            for name in rest.split(","):
                stars, name, size = re.fullmatch(r"\s*([*\s]*)(\w+)\s*(?:\[(\w+)\])?\s*",
                                                 name).groups()
                kind = self.of(words, stars.count("*"))
                yield name, f"{kind} * {self.values.get(size, size)}" if size else kind


def split(arguments):
    return [] if arguments.strip() == "void" else arguments.split(",")


def options(source):
    """Members of the library's structs, as messages name them, and the command's words for them."""
    table = (source / "app" / "fields.c").read_text()
    rows = (source / "src" / "model" / "recipe" / "option_rows.c").read_text()
    found = re.findall(r'\{"([a-z_0-9. ]+)", "([a-z0-9-]+)"\}', table)
    found += [(f"train.{member}", option) for member, option
              in re.findall(r'OPTION\((\w+), "([a-z0-9-]+)"', rows)]
    return {field: option.replace("-", "_") for field, option in found}


def module(source):
    types = Types(declarations(source / "include" / "quern"))
    lines = ['"""Made by generate_abi.py from the public headers."""', "import ctypes as C", ""]
    lines += [f"{name} = {value}" for name, value in types.values.items()]
    lines += ["", f"OPTIONS = {options(source)!r}", ""]
    waiting = list(types.structs)
    for result, name, arguments in types.callbacks:
        if not re.search(r"\bqn_error\b", arguments):
            lines.append(f"{name} = {types.callback(result, arguments)}")
    by_name = dict(waiting)
    done = set()

    def add(name):
        if name in done:
            return
        done.add(name)
        members = list(types.fields(by_name[name]))
        for _, kind in members:
            for other in re.findall(r"\bqn_\w+", kind):
                if other in by_name:
                    add(other)
        lines.extend(["", "", f"class {name}(C.Structure):", "    _fields_ = ["])
        lines.extend(f'        ("{member}", {kind}),' for member, kind in members)
        lines.append("    ]")

    for name, _ in waiting:
        add(name)
    for result, name, arguments in types.callbacks:
        if re.search(r"\bqn_error\b", arguments):
            lines.append(f"{name} = {types.callback(result, arguments)}")
    lines += ["", "", "def bind(library):",
              '    """Gives the functions of the library their types."""']
    for result, name, arguments in types.functions:
        stars = result.count("*")
        words = result.replace("*", " ")
        lines.append(f"    f = library.{name}")
        lines.append(f"    f.restype = {types.of(words, stars)}")
        lines.append(f"    f.argtypes = [{', '.join(map(types.argument, split(arguments)))}]")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(module(Path(sys.argv[1])))
