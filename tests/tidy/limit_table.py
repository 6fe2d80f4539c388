#!/usr/bin/python3
"""Compares the tables of limits in docs/SECURITY.md with the code: every limit of libdcs/base/limits.h and load_limits.h
with its value, and every name that the files `limits` and `policy` take."""
import os
import re
import sys

ROOT = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def text_of(*path):
    return open(os.path.join(ROOT, *path)).read()


def constants():
    values = {}
    for name in ("limits.h", "load_limits.h"):
        found = re.findall(r"inline constexpr [\w:]+ (\w+) =\s*([^;]+);", text_of("libdcs/base", name))
        assert len(found) > 5, f"no limits were found in {name}"
        for limit, expression in found:
            plain = re.sub(r"(\d)(?:u|ull|ll)\b", r"\1", re.sub(r"sizeof\(\w+\)", "32", expression))
            values[limit] = int(eval(plain, {"__builtins__": {}}, dict(values)))  # of our own header
    return values


def settable():
    names = re.findall(r'^\s+\{"(\w+)", &turn::UserLimits::', text_of("scheduler/shell/policy_file.cc"), re.M)
    rules = re.findall(r'rule == "(\w+)"\) return &policy', text_of("scheduler/shell/policy_file.cc"))
    assert len(names) >= 5 and len(rules) >= 4, (names, rules)
    return {f"limits: {name}" for name in names} | {f"policy: {rule}" for rule in rules}


def defaults(values):
    """Of the settings in the file `limits`."""
    header = text_of("scheduler/turn/user_limits.h")
    found = re.findall(r"std::size_t (\w+) = ([^;]+);", header)
    return {f"limits: {name}": int(eval(text.replace("limits::", "").replace("/", "//"), {"__builtins__": {}}, values))
            for name, text in found}


def main():
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", text_of("docs/SECURITY.md"), re.M)
    told = {name: value.strip() for name, value in rows}
    bad = []
    values = constants()
    for name, value in {**values, **defaults(dict(values))}.items():
        if name not in told:
            bad.append(f"docs/SECURITY.md does not list the limit `{name}` ({value:,})")
        elif told[name].replace(",", "") != str(value):
            bad.append(f"docs/SECURITY.md says that `{name}` is {told[name]}, it is {value:,}")
    known = set(constants()) | settable()
    bad += [f"docs/SECURITY.md does not list the setting `{name}`" for name in sorted(settable() - set(told))]
    section = text_of("docs/SECURITY.md").split("\n## 9. Limits\n", 1)[1]
    bad += [f"docs/SECURITY.md lists `{name}`, which is no limit"
            for name in re.findall(r"^\| `([^`]+)` \|", section, re.M) if name not in known]
    for line in bad:
        print(line)
    print(f"{len(constants())} limits, {len(settable())} settings, {len(bad)} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
