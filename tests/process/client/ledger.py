#!/usr/bin/python3
"""The ledger grain (ledger.c has what it does) in Python. how: bytes, text (default) or sys, the way it reads."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../libdcs/python"))
import dcs_grain


def main():
    dcs_grain.handler()
    pause, every = (int(sys.argv[i]) if len(sys.argv) > i else 0 for i in (1, 2))
    how = sys.argv[3] if len(sys.argv) > 3 else "text"
    readline = {"bytes": lambda: dcs_grain.stdin.readline().decode(), "sys": sys.stdin.readline}.get(
        how, dcs_grain.text.readline)
    lines = total = 0
    while text := readline():
        text = text[:-1] if text.endswith("\n") else text
        if lines == 0 and text.startswith("#ledger "):
            lines, total = map(int, text.split()[1:])
            continue
        lines += 1
        total = (total * 31 + len(text)) % 1000003
        print(lines, total, text)
        if lines % 100 == 7:
            print("note at line", lines, file=sys.stderr)
        if dcs_grain.time_to_checkpoint() or every and lines % every == 0:
            with dcs_grain.checkpoint(f"line {lines}") as state:
                state.write(f"#ledger {lines} {total}\n")
            if how == "again":
                sys.exit(dcs_grain.EXIT_AGAIN)
        if pause and lines % pause == 0:
            time.sleep(0.01)
    print("end", lines, total)


if __name__ == "__main__":
    main()
