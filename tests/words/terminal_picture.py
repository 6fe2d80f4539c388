#!/usr/bin/python3
"""Makes the picture of a terminal in README.md: types the commands of terminal_picture.sh into a shell, each in a private pool's
environment, and draws what they print.
    terminal_picture.py [OUT.svg]      default: docs/pictures/first-run.svg"""
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "process"))
from pool import BIN  # noqa: E402

WIDE, LINE, MARGIN = 8.4, 20, 16  # of a character of 14 px, of a line, around all, in pixels
COLUMNS = 96
MARK = "@typed@"
SHELL = re.compile(r".*: line \d+: |  +\d+ Killed|dcs: warning: started by root")  # of this script and machine, not of DCS


def typed(commands, home):
    """(command, lines that it wrote) of each; one shell types them all, so $! and & work."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DCS_", "XDG_"))}
    env.update(HOME=home, LC_ALL="C.UTF-8", PATH=f"{BIN}:/usr/bin:/bin", LD_LIBRARY_PATH=os.path.join(os.path.dirname(BIN), "lib"))
    script = "".join(f"{{ {command}\n}} 2>&1; echo {MARK}\n" for command in commands) 
    done = subprocess.run(["/bin/bash", "--norc", "-c", script], cwd=home, env=env, stdin=subprocess.DEVNULL, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    written = done.stdout.replace(home, "/home/ann").split(MARK + "\n")
    assert len(written) == len(commands) + 1, done.stdout
    return [(command, [line for line in text.splitlines() if line and not SHELL.match(line)])
            for command, text in zip(commands, written)]


def picture(session):
    rows = []
    for command, lines in session:
        rows.append(("command", "$ " + command))
        rows += [("output", line) for line in lines]
    height = 2 * MARGIN + LINE * len(rows)
    width = round(2 * MARGIN + WIDE * max(COLUMNS, *(len(text) for _, text in rows)))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">',
           "<title>A first run of DCS: all processes are killed, and no result is lost</title>",
           "<style>text{font:14px ui-monospace,Menlo,Consolas,monospace;white-space:pre}.command{fill:#e6edf3;font-weight:bold}"
           ".output{fill:#9fb3c8}</style>",
           f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>']
    for number, (kind, text) in enumerate(rows):
        out.append(f'<text x="{MARGIN}" y="{MARGIN + LINE * number + 15}" class="{kind}" xml:space="preserve">{html.escape(text)}</text>')
    return "\n".join(out) + "\n</svg>\n"


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "docs", "pictures", "first-run.svg")
    with open(os.path.join(HERE, "terminal_picture.sh")) as file:
        commands = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
    home = tempfile.mkdtemp(prefix="dcs-picture-")
    try:
        text = picture(typed(commands, home))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    with open(out, "w") as file:
        file.write(text)


main()
