#!/usr/bin/python3
"""The structs of dcs.h may grow: one program, compiled against the headers as they are, against copies whose structs have
lost fields at their end and copies whose structs have more of them, does the same with the library and a real pool."""
import os
import re
import shutil
import subprocess

from pool import ROOT, Pool
from restartable import library

INCLUDE = os.path.join(ROOT, "libdcs/include")
PROGRAM = os.path.join(ROOT, "tests/process/client/struct_sizes.c")
# The first field that the shorter struct does not have. d_info would lose its last list, and orders end in their grain.
CUT = {"d_pool_options": "ident", "d_file": "executable", "d_grain": "programs", "d_result": "output", "d_host_row": "blamed",
       "d_session_row": "saved_cpu_s", "d_move_row": "age_s", "d_file_row": "digest", "d_grain_row": "file_count",
       "d_reason": "hosts", "d_explanation": "reason_count", "d_host_change": "alert_s", "d_lock_request": "max_kills",
       "d_lock_answer": "holder_host", "d_lock_state": "outcome", "d_slot_holder": "command"}
ALIKE = {"d_info", "d_grain_order", "d_row_sizes"}
STRUCT = re.compile(r"^struct (\w+) \{[^\n]*\n(.*?)^\};$", re.M | re.S)
NAMES = ("dcs.h", "dcs_query.h", "dcs_lock.h", "dcs_paper.h")


def shorter(match):
    name, body = match.group(1), match.group(2)
    if name in ALIKE:
        return match.group(0)
    field = re.search(r"^    [^\n/]*\b%s\b[^\n]*[,;]" % CUT[name], body, re.M)
    assert field, f"{name} has no field {CUT[name]}"
    return "struct %s {\n%s};" % (name, body[:field.start()])


def longer(match):
    name, body = match.group(1), match.group(2)
    more = "" if name in ("d_grain_order", "d_row_sizes") else "    long later;\n    const char *later_text;\n"
    return "struct %s {\n%s%s};" % (name, body, more)


def headers(directory, change):
    os.mkdir(directory)
    changed = set()
    for name in NAMES:
        text = open(os.path.join(INCLUDE, name)).read()
        changed |= {m.group(1) for m in STRUCT.finditer(text)}
        with open(os.path.join(directory, name), "w") as file:
            file.write(STRUCT.sub(change, text) if change else text)
    assert changed == set(CUT) | ALIKE, f"structs of the headers and of this test: {sorted(changed ^ (set(CUT) | ALIKE))}"
    text = "".join(open(os.path.join(INCLUDE, name)).read() for name in NAMES)
    for name in changed:
        assert re.search(r"struct %s \{[^\n]*\n    size_t struct_size[,;]" % name, text), f"{name} does not begin with its size"


def build(base, name, change):
    directory = os.path.join(base, name)
    headers(directory, change)
    program = os.path.join(directory, "program")
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-D" + name.upper(), "-I", directory,
                    PROGRAM, "-o", program, "-L", library(), "-ldcs"], check=True)
    return program


def sizes(base, name):
    """Of the structs, that the copies are what they are to be."""
    source = '#include <stdio.h>\n#include "dcs.h"\n#include "dcs_lock.h"\nint main(void) { %s }\n' % "".join(
        f'printf("{struct} %zu\\n", sizeof(struct {struct}));' for struct in sorted(CUT))
    program = os.path.join(base, name, "sizes")
    subprocess.run(["cc", "-x", "c", "-I", os.path.join(base, name), "-o", program, "-"], input=source.encode(), check=True)
    lines = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
    return {line.split()[0]: int(line.split()[1]) for line in lines if line}


def main():
    with Pool(2, 2, 1.0) as pool:
        programs = {name: build(pool.base, name, change)
                    for name, change in (("present", None), ("shorter", shorter), ("longer", longer))}
        present, less, more = (sizes(pool.base, name) for name in programs)
        assert all(less[s] < present[s] < more[s] for s in CUT), (less, present, more)
        said = {}
        for name, program in programs.items():
            done = subprocess.run([program, "7", pool.dir], env=dict(pool.env, LD_LIBRARY_PATH=library(), DCS_LOCK_DIR=pool.base),
                                  capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, f"{name}: exit {done.returncode}: {done.stdout}{done.stderr}"
            said[name] = done.stdout
        assert said["shorter"] == said["present"] == said["longer"], said
        assert len(said["present"].splitlines()) == 2 + 5 + 1 + 1 + 1, said["present"]
        shutil.rmtree(os.path.join(pool.base, "longer"))
    print("3 passed, 0 failed")


if __name__ == "__main__":
    main()
