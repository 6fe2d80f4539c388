#!/usr/bin/python3
"""Makes the manual pages: of each call from its header (3), of each command and daemon from its table of options (1, 8), of each
page of docs/ (5, 7). So there is one source, and what these say is what the pages say.

    make_pages.py SOURCE BIN OUT     the project's directory, that of its programs, and where to put the pages"""
import os
import re
import subprocess
import sys

from roff import example, escaped, heading, markdown, option_lists, running, title

HEADERS = ("dcs.h", "dcs_query.h", "dcs_lock.h", "grainlib.h")
DAEMONS = {"dcs_scheduler": "the scheduler of a pool", "dcs_grainserver": "runs grains on a host",
           "dcs_backupd": "takes reports while the scheduler is away"}
PROGRAMS = {"dcs_checkpoint": "write a checkpoint for a grain in any language",
            "find_factor": "factor integers by elliptic curves on a pool"}
FORMATS = {"STATE_FORMAT", "SESSION_EXPORT", "GRAIN_PROTOCOL"}  # section 5; the other pages of docs/ are in 7
PART_OF = {"dcs_query.h": "dcs.h"}  # which is included in its place
LINK = {"dcs.h": "-ldcs", "dcs_query.h": "-ldcs", "dcs_lock.h": "-ldcs", "grainlib.h": "-ldcs_grain"}


def output_of(path, *words):
    done = subprocess.run([path, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout, f"{path} {' '.join(words)}: exit {done.returncode}"
    return done.stdout


def tables_of(path):
    """What a program says of its commands (libdcs/base/option_table.h): of each its texts, and its options as lists of name,
    letter, value, help and heading."""
    commands = []
    for line in output_of(path, "__tables").splitlines():
        key, *fields = [re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], field) for field in line.split("\t")]
        if key == "command":
            commands.append({"command": fields[0], "options": [], "notes": ""})
        elif key == "option":
            commands[-1]["options"].append(fields)
        else:
            commands[-1][key] = fields[0]
    return commands


def table_of_help(path):
    """The same of a program that has no table but a help text: its options stay in the notes."""
    text = output_of(path, "--help")
    usage = re.search(r"^[Uu]sage: (.*?)\n(?=\n|\S|  -)", text + "\n", re.M | re.S)
    about, notes = text.split(usage.group(0))
    return {"usage": usage.group(0), "about": about, "options": [], "notes": notes}


def command_page(name, section, manual, summary, table, see):
    about, _, examples = table["about"].partition("\nExamples:\n")
    usage = re.sub(r"\n +", "\n", re.sub(r"^[Uu]sage: ", "", table["usage"])).strip().split("\n")
    out = title(name, section, manual) + heading("name") + f"{escaped(name)} \\- {escaped(summary)}\n"
    out += heading("synopsis") + example(usage)
    out += heading("description") + option_lists(about.split("\n") + [""] + table["notes"].split("\n"))
    if table["options"]:
        out += heading("options")
    for option, letter, value, help, group in table["options"]:
        out += f'.SS "{escaped(group)}"\n' if group else ""
        names = f"\\-{letter}, " if letter else ""
        out += f'.TP\n.B "{names}{escaped("--" + option + (" " + value if value else ""))}"\n{running(help)}\n'
    if examples:
        out += heading("examples") + example([line[2:] for line in examples.rstrip("\n").split("\n")])
    return out + see_also(see)


def see_also(names):
    lines = [f".BR {escaped(name)} ({section})" for name, section in names]
    return heading("see also") + ",\n".join(lines) + "\n"


def commands(bin, out):
    whole, *verbs = tables_of(os.path.join(bin, "dcs"))
    names = {verb["command"]: verb["command"].replace(" ", "-") for verb in verbs}
    see = [(name, 1) for name in names.values()] + [("dcs", 7)]
    write(out, "dcs", 1, command_page("dcs", 1, "User Commands", whole["summary"], whole, see))
    for verb in verbs:
        command, name = verb["command"], names[verb["command"]]
        near = [(n, 1) for c, n in names.items() if c.split()[:2] == command.split()[:2] and c != command]
        write(out, name, 1, command_page(name, 1, "User Commands", verb["summary"], verb, [("dcs", 1)] + near))
    for program, summary in PROGRAMS.items():
        table = table_of_help(os.path.join(bin, program))
        write(out, program, 1, command_page(program, 1, "User Commands", summary, table, [("dcs", 7)]))
    for daemon, summary in DAEMONS.items():
        others = [(d, 8) for d in DAEMONS if d != daemon]
        table, = tables_of(os.path.join(bin, daemon))
        write(out, daemon, 8, command_page(daemon, 8, "System Administration", summary, table,
                                           others + [("dcs-up", 1), ("dcs-grain-hosts", 7)]))


# ---- the library ------------------------------------------------------------------------------

def comment_text(comment):
    text = re.sub(r"\n \* ?", "\n", comment).strip()
    return re.sub(r"^---.*---\n+", "", text)  # a ruler between parts of the header


def pieces(header):
    """(comment, declarations behind it) in order; the first comment is about the whole header."""
    return [(comment_text(m.group(1)), m.group(2)) for m in
            re.finditer(r"^/\*(.*?)\*/\n?(.*?)(?=^/\*|\Z)", header, re.M | re.S)]


def meanings_of(header):
    """D_E_... -> what it means, of the header's enum."""
    return {name: (words or "").strip() for name, words in
            re.findall(r"^    (D_E_\w+) = \d+,?(?: */\* (.*?) \*/)?$", header, re.M)}


def errors_of(comment):
    """D_E_... -> when, or None; of what stands behind "Errors:". `as NAME` stands for those of that call."""
    found = re.search(r"^Errors(?: of \w+)?: (.*)", comment, re.M | re.S)
    text = found.group(1).replace("\n", " ") if found else ""
    errors = {name: words or None for name, words in re.findall(r"(D_E_\w+)(?: \(([^)]*)\))?", text)}
    return errors, re.findall(r"(?<!\()as (d_\w+)", text)


def without_bodies(declarations):
    return re.sub(r"/\*.*?\*/|struct \w+ \{.*?\};", "", declarations, flags=re.S)


class Call:
    """A comment of a header and the functions behind it."""

    def __init__(self, header_name, comment, declarations):
        self.header_name, self.declarations = header_name, declarations
        self.functions = list(dict.fromkeys(re.findall(r"\b(d_\w+)\(", without_bodies(declarations))))
        text = comment.partition("\nErrors")[0]
        self.text = re.sub(r"^[A-Z]\d+(?: \([^)]*\))?[.:] ", "", text).strip()
        self.errors, self.alike = errors_of(comment)

    def summary(self):
        first = re.split(r"(?<=[a-z0-9_)\"])[.;:](?:\s|$)", self.text, maxsplit=1)[0].replace("\n", " ")
        return first[:1].lower() + first[1:]

    def all_errors(self, calls):
        errors = dict(self.errors)
        for call in calls:
            if set(call.functions) & set(self.alike):
                errors = {**call.all_errors(calls), **errors}
        return errors

    def page(self, calls, meanings):
        name = self.functions[0]
        out = title(name, 3, "DCS Library") + heading("name")
        out += f"{escaped(', '.join(self.functions))} \\- {escaped(self.summary())}\n"
        code = re.sub(r"#(ifdef|endif|if|ifndef).*?\n(extern .*\n|}\n)?", "", self.declarations).strip("\n").split("\n")
        include = f"#include <{PART_OF.get(self.header_name, self.header_name)}>"
        out += heading("synopsis") + example([include, ""] + code + ["", f"Link with {LINK[self.header_name]}."])
        out += heading("description") + ".PP\n" + running(self.text, stars=False) + "\n"
        errors = self.all_errors(calls)
        if errors:
            out += heading("errors") + "".join(f".TP\n.B {e}\n{running(when or meanings[e])}\n" for e, when in errors.items())
            out += ".PP\nThose of every call are in\n.BR dcs_h (3).\n"
        return out


def library(source, out):
    meanings = {}
    for header_name in HEADERS:
        header = open(os.path.join(source, "libdcs/include", header_name)).read()
        header = re.sub(r"^static inline ([^{}]*?)(?: /\*[^{}]*?)?\s\{(?:[^\n]*\}|\n.*?^\})$", r"\1;", header, flags=re.M | re.S)
        name, own, found = header_name.replace(".", "_"), meanings_of(header), pieces(header)
        meanings.update(own)  # dcs_query.h names errors of dcs.h
        calls = [Call(header_name, comment, code) for comment, code in found[1:]
                 if re.search(r"^[A-Za-z].*\bd_\w+\(", without_bodies(code), re.M)]
        summary, _, rest = found[0][0].partition("\n")
        summary = summary.partition(": ")[2].split(". ")[0].split(" (")[0].rstrip(".")
        page = title(name, 3, "DCS Library") + heading("name") + f"{name} \\- {escaped(summary)}\n"
        page += heading("description") + "".join(".PP\n" + paragraph(p) for p in rest.split("\n\n"))
        if own:
            page += heading("errors") + "".join(f".TP\n.B {e}\n{running(words)}\n" for e, words in own.items())
        write(out, name, 3, page + see_also([(call.functions[0], 3) for call in calls]))
        for call in calls:
            write(out, call.functions[0], 3, call.page(calls, meanings) + see_also([(name, 3)]))
            for other in call.functions[1:]:
                write(out, other, 3, f".so man3/{call.functions[0]}.3\n")


def paragraph(text):
    return example(text.split("\n")) if "\n  " in text else running(text, stars=False) + "\n"


def explanations(source, out):
    sources = [(os.path.join(source, "README.md"), "dcs")]
    folder = os.path.join(source, "docs")
    sources += [(os.path.join(folder, n), "dcs-" + n[:-3].lower().replace("_", "-")) for n in sorted(os.listdir(folder)) if n.endswith(".md")]
    for path, name in sources:
        section = 5 if os.path.basename(path)[:-3] in FORMATS else 7
        heading_text, roff = markdown(open(path).read())
        summary = re.sub(r"^DCS: ", "", heading_text).replace("`", "")
        page = title(name, section, "DCS") + heading("name") + f"{escaped(name)} \\- {escaped(summary)}\n" + roff
        write(out, name, section, page + see_also([("dcs", 1), ("dcs", 7)]))


def write(out, name, section, text):
    folder = os.path.join(out, f"man{section}")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, f"{name}.{section}"), "w") as file:
        file.write(text)


def main():
    source, bin, out = sys.argv[1:]
    commands(bin, out)
    library(source, out)
    explanations(source, out)


if __name__ == "__main__":
    main()
