#!/usr/bin/python3
"""Makes the manual pages: of each call from its header (3), of each command and daemon from its --help (1, 8), of each
page of docs/ (5, 7). So there is one source, and what these say is what the pages say.

    make_pages.py SOURCE BIN OUT     the project's directory, that of its programs, and where to put the pages"""
import os
import re
import subprocess
import sys

from roff import example, escaped, heading, markdown, option_lists, running, title

HEADERS = ("dcs.h", "dcs_lock.h", "grainlib.h")
DAEMONS = {"dcs_scheduler": "the scheduler of a pool", "dcs_grainserver": "runs grains on a host",
           "dcs_backupd": "takes reports while the scheduler is away"}
PROGRAMS = {"dcs_checkpoint": "write a checkpoint for a grain in any language",
            "find_factor": "factor integers by elliptic curves on a pool"}
FORMATS = {"STATE_FORMAT", "SESSION_EXPORT", "GRAIN_PROTOCOL"}  # section 5; the other pages of docs/ are in 7
LINK = {"dcs.h": "-ldcs", "dcs_lock.h": "-ldcs", "grainlib.h": "-ldcs_grain"}


def help_of(path, *words):
    done = subprocess.run([path, *words, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout, f"{path} {' '.join(words)} --help: exit {done.returncode}"
    return done.stdout


def command_page(name, section, manual, summary, text, see):
    """Of a help text: what it is, Examples:, Usage:, lists and paragraphs."""
    examples = re.search(r"^Examples:\n(.*?)\n\n", text, re.M | re.S)
    usage = re.search(r"^[Uu]sage: (.*?)\n(?=\n|\S|  -)", text + "\n", re.M | re.S)
    rest = text
    for found in (examples, usage):
        if found:
            rest = rest.replace(found.group(0), "\n" if found is examples else "\n\n")
    out = title(name, section, manual) + heading("name") + f"{escaped(name)} \\- {escaped(summary)}\n"
    out += heading("synopsis") + example(re.sub(r"\n {7}", "\n", usage.group(1)).split("\n"))
    out += heading("description") + option_lists(rest.split("\n"))
    if examples:
        out += heading("examples") + example([line[2:] for line in examples.group(1).split("\n")])
    return out + see_also(see)


def see_also(names):
    lines = [f".BR {escaped(name)} ({section})" for name, section in names]
    return heading("see also") + ",\n".join(lines) + "\n"


def verbs(bin):
    """(verb, summary) as `dcs --help` lists them."""
    text = help_of(os.path.join(bin, "dcs"))
    return re.findall(r"^  ([a-z-]+(?: [a-z-]+)?)  +(\S.*)$", text.split("Usage:")[1], re.M)


def commands(bin, out):
    dcs = os.path.join(bin, "dcs")
    all_verbs = verbs(bin)
    see = [("dcs-" + verb.replace(" ", "-"), 1) for verb, _ in all_verbs] + [("dcs", 7)]
    write(out, "dcs", 1, command_page("dcs", 1, "User Commands", "work on many hosts, in grains that survive crashes",
                                      help_of(dcs), see))
    for verb, summary in all_verbs:
        name = "dcs-" + verb.replace(" ", "-")
        noun = verb.split()[0]
        near = [(f"dcs-{v.replace(' ', '-')}", 1) for v, _ in all_verbs if v.split()[0] == noun and v != verb]
        write(out, name, 1, command_page(name, 1, "User Commands", summary, help_of(dcs, *verb.split()), [("dcs", 1)] + near))
    for program, summary in PROGRAMS.items():
        write(out, program, 1, command_page(program, 1, "User Commands", summary, help_of(os.path.join(bin, program)), [("dcs", 7)]))
    for daemon, summary in DAEMONS.items():
        others = [(d, 8) for d in DAEMONS if d != daemon]
        write(out, daemon, 8, command_page(daemon, 8, "System Administration", summary, help_of(os.path.join(bin, daemon)),
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
        out += heading("synopsis") + example([f"#include <{self.header_name}>", ""] + code + ["", f"Link with {LINK[self.header_name]}."])
        out += heading("description") + ".PP\n" + running(self.text, stars=False) + "\n"
        errors = self.all_errors(calls)
        if errors:
            out += heading("errors") + "".join(f".TP\n.B {e}\n{running(when or meanings[e])}\n" for e, when in errors.items())
            out += ".PP\nThose of every call are in\n.BR dcs_h (3).\n"
        return out


def library(source, out):
    for header_name in HEADERS:
        header = open(os.path.join(source, "libdcs/include", header_name)).read()
        name, meanings, found = header_name.replace(".", "_"), meanings_of(header), pieces(header)
        calls = [Call(header_name, comment, code) for comment, code in found[1:]
                 if re.search(r"^[a-z].*\bd_\w+\(", without_bodies(code), re.M)]
        summary, _, rest = found[0][0].partition("\n")
        summary = summary.partition(": ")[2].split(". ")[0].split(" (")[0].rstrip(".")
        page = title(name, 3, "DCS Library") + heading("name") + f"{name} \\- {escaped(summary)}\n"
        page += heading("description") + "".join(".PP\n" + paragraph(p) for p in rest.split("\n\n"))
        if meanings:
            page += heading("errors") + "".join(f".TP\n.B {e}\n{running(words)}\n" for e, words in meanings.items())
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
