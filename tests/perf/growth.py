#!/usr/bin/python3
"""How the cost of one grain and of one call-in grows with the number of grains and of grain servers.

    growth.py [--grains N...] [--servers N...] [--seconds S] [--picture FILE.svg]

Prints a table with a row for each cost and a column for each number. Its last column is by how much the cost of one grew
from the last number but one to the last; in brackets by how much it may, if the whole grows with n log n. --picture draws
the costs, and needs python3-matplotlib."""
import argparse
import math
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import figures  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("DCS_BIN") or os.path.join(ROOT, "build/release/bin")


def measured(commands):
    """{kind: {cost: {n: value}}}; kind is "grains" or "servers", as the names of the figures begin "N grains" or "N servers"."""
    with tempfile.TemporaryDirectory(prefix="dcs-growth-") as folder:
        path = os.path.join(folder, "figures")
        for command in commands:
            print("+", " ".join(os.path.basename(word) for word in command), file=sys.stderr, flush=True)
            subprocess.run(command, env={**os.environ, figures.FILE: path}, stdout=subprocess.DEVNULL, check=True)
        rows, _ = figures.rows_of(open(path).read().splitlines())
    found = {}
    for row in rows:
        count, kind, cost = re.fullmatch(r"(\d+) (grains|servers)[,:] (.*)", row.name).groups()
        found.setdefault(kind, {}).setdefault(f"{cost}, {row.unit}", {})[int(count)] = row.value
    return found


def table(kind, costs):
    counts = sorted({count for values in costs.values() for count in values})
    lines = [["of one", *(f"{count:,} {kind}" for count in counts), "growth"]]
    for cost, values in costs.items():
        line = [cost, *(figures.number(values[count]) if count in values else "-" for count in counts)]
        last = sorted(values)[-2:]
        fair = math.log(last[-1]) / math.log(last[0])
        lines.append([*line, f"{values[last[-1]] / values[last[0]]:.2f} ({fair:.2f})" if len(last) == 2 else "-"])
    wide = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.rjust(wide[i]) if i else cell.ljust(wide[i]) for i, cell in enumerate(line)))


def draw(found, path):
    try:
        import matplotlib
    except ImportError:
        sys.exit("growth.py: --picture needs matplotlib: apt-get install python3-matplotlib")
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "dcs"
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(1, len(found), figsize=(6.2 * len(found), 4.6), layout="constrained", squeeze=False)
    for place, (kind, costs) in zip(axes[0], found.items()):
        for cost, values in costs.items():
            counts = sorted(values)
            place.loglog(counts, [values[count] for count in counts], marker="o", label=cost)
        place.set_xlabel(kind)
        place.set_title(f"Costs of one, by the number of {kind}", fontsize=11)
        place.grid(True, which="major", alpha=.3)
        place.legend(fontsize=7, loc="best")
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grains", type=int, nargs="*", default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--servers", type=int, nargs="*", default=[100, 1000, 5000])
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--picture")
    options = parser.parse_args()
    commands = [[os.path.join(BIN, "perf_million"), str(count)] for count in options.grains]
    # As many call-ins a second, whatever the number of servers.
    commands += [[os.path.join(BIN, "perf_call_in"), str(count), str(options.seconds), str(max(0.01, count / 1000)),
                  str(options.seconds)] for count in options.servers]
    found = measured(commands)
    for kind, costs in found.items():
        table(kind, costs)
        print()
    if options.picture:
        draw(found, options.picture)


main()
