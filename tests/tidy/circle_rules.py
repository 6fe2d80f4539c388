#!/usr/bin/python3
"""Finds files that include each other in a circle. x.h and x.cc are one room: a reader of the one needs the other."""
import os
import re
import sys

ROOT = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOPS = ("libdcs", "scheduler", "grainserver", "backupd", "control-examples", "grains")
SOURCE = (".h", ".cc", ".c", ".hpp")


def room(path):
    return os.path.splitext(path)[0]


def rooms():
    """Room -> the rooms that its files include."""
    files = {os.path.relpath(os.path.join(where, file), ROOT) for top in TOPS for where, _, names in os.walk(os.path.join(ROOT, top))
             for file in names if file.endswith(SOURCE)}
    edges = {room(path): set() for path in files}
    for path in files:
        for line in open(os.path.join(ROOT, path), errors="replace"):
            match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not match:
                continue
            for found in (match[1], "libdcs/" + match[1], "libdcs/include/" + match[1], os.path.join(os.path.dirname(path), match[1])):
                if found in files:
                    if room(found) != room(path):
                        edges[room(path)].add(room(found))
                    break
    return edges


def circles(edges):
    """Strongly connected sets of two rooms and more (Tarjan, without recursion)."""
    index, low, on, stack, found = {}, {}, set(), [], []
    for root in sorted(edges):
        if root in index:
            continue
        work = [(root, iter(sorted(edges[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            here, rest = work[-1]
            for there in rest:
                if there not in index:
                    index[there] = low[there] = len(index)
                    stack.append(there)
                    on.add(there)
                    work.append((there, iter(sorted(edges[there]))))
                    break
                if there in on:
                    low[here] = min(low[here], index[there])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[here])
                if low[here] == index[here]:
                    members = []
                    while not members or members[-1] != here:
                        members.append(stack.pop())
                        on.discard(members[-1])
                    if len(members) > 1:
                        found.append(tuple(sorted(members)))
    return found


def main():
    edges = rooms()
    assert len(edges) > 300, "the sources were not found"
    bad = ["a circle of includes: " + " ".join(circle) for circle in circles(edges)]
    print("\n".join(bad) if bad else f"{len(edges)} rooms, no circle")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
