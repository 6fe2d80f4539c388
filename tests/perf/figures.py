"""Figures of measurements. A program calls figure() after each round; tests/perf/run makes a table of them, one row for each name,
and compares it with an earlier table."""
import math
import os
import re
import statistics

FILE = "DCS_FIGURES"  # the variable that names where figures go; without it they go nowhere. figures.h knows it too
COLUMNS = ("name", "value", "yardstick", "ratio", "unit", "spread")
UNKNOWN_SPREAD, LEAST_SPREAD = 10.0, 1.0  # percent: of a figure measured once, and of any


def figure(name, value, yardstick, unit):
    """Of one round. A unit that ends in /s is better when there is more of it, any other when there is less. The yardstick, in the
    same unit, is what the machine does otherwise; None: there is nothing like it."""
    if FILE in os.environ:
        with open(os.environ[FILE], "a") as file:
            file.write(f"{name}\t{value!r}\t{'-' if yardstick is None else repr(yardstick)}\t{unit}\n")


def missing(name, reason):
    """What this machine cannot measure."""
    if FILE in os.environ:
        with open(os.environ[FILE], "a") as file:
            file.write(f"{name}\tmissing\t{reason}\n")


def number(value):
    """With four significant digits and no exponent."""
    digits = 0 if value == 0 else max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f}"


class Row:
    def __init__(self, name, value, yardstick, unit, spread):
        self.name, self.value, self.yardstick, self.unit, self.spread = name, value, yardstick, unit, spread

    def words(self):
        has = self.yardstick is not None
        return (self.name, number(self.value), number(self.yardstick) if has else "-",
                number(self.value / self.yardstick) if has else "-", self.unit,
                "-" if self.spread is None else f"{self.spread:.0f} %")

    def slower_than(self, old):
        """By how many percent, if it is by more than what rounds of both differ; else None."""
        both = self.yardstick and old.yardstick
        new, before = (self.value / self.yardstick, old.value / old.yardstick) if both else (self.value, old.value)
        if not new or not before:
            return None if new == before or self.unit.endswith("/s") == (new > before) else 100.0
        lost = 100 * (before / new - 1 if self.unit.endswith("/s") else new / before - 1)
        known = [UNKNOWN_SPREAD if row.spread is None else max(row.spread, LEAST_SPREAD) for row in (self, old)]
        return lost if lost > sum(known) else None


def rows_of(lines):
    """From what figure() and missing() wrote: rows with medians of the rounds, and half of the range of their ratios in percent of
    the median; and (name, reason) of what is missing."""
    rounds, absent = {}, {}
    for line in lines:
        name, value, yardstick, *unit = line.split("\t")
        if not unit:
            absent[name] = yardstick
            continue
        rounds.setdefault((name, unit[0]), []).append((float(value), None if yardstick == "-" else float(yardstick)))
    rows = []
    for (name, unit), found in rounds.items():
        values = [value for value, _ in found]
        with_yardstick = all(yardstick for _, yardstick in found)
        ratios = [value / yardstick for value, yardstick in found] if with_yardstick else values
        middle = statistics.median(ratios)
        spread = 50 * (max(ratios) - min(ratios)) / middle if len(found) > 1 and middle else None
        value = statistics.median(values)
        # Value and yardstick in the table have the ratio of the rounds, which may differ from that of the medians.
        rows.append(Row(name, value, value / middle if with_yardstick and middle else None, unit, spread))
    return rows, list(absent.items())


def table(title, rows, absent):
    """title: lines about the run. absent: (name, reason) of what was not measured."""
    lines = [COLUMNS, *(row.words() for row in rows)]
    wide = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    text = "".join(f"# {line}\n" for line in title)
    for line in lines:
        cells = [cell.ljust(wide[i]) if i in (0, 4) else cell.rjust(wide[i]) for i, cell in enumerate(line)]
        text += "  ".join(cells).rstrip() + "\n"
    return text + "".join(f"{name}  missing: {reason}\n" for name, reason in absent)


def parse(text):
    """The rows of a table, by name."""
    rows = {}
    for line in text.splitlines():
        cells = re.split(r" {2,}", line.strip())
        if line.startswith("#") or cells[0] == COLUMNS[0] or len(cells) != len(COLUMNS):
            continue
        name, value, yardstick, _, unit, spread = cells
        rows[name] = Row(name, float(value), None if yardstick == "-" else float(yardstick), unit,
                         None if spread == "-" else float(spread.split()[0]))
    return rows


def compare(new, old, whole=True):
    """Lines that name what is slower in the table `new` than in `old`, and what only one of them has; and whether any is slower.
    whole: `new` should have all that `old` has."""
    now, before = parse(new), parse(old)
    slower = [(name, now[name].slower_than(before[name])) for name in now if name in before]
    slower = [(name, lost) for name, lost in slower if lost is not None]
    lines = [f"slower by {lost:.0f} %: {name}: {' '.join(before[name].words()[1:5])} -> {' '.join(now[name].words()[1:5])}"
             for name, lost in slower]
    lines += [f"not in the earlier table: {name}" for name in now if name not in before]
    lines += [f"only in the earlier table: {name}" for name in before if whole and name not in now]
    return lines, bool(slower)
