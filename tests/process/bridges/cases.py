"""How many of a client's own cases pass, as docs/BRIDGES.md has it; the tests that run the cases compare."""
import os
import re

from pool import ROOT


def counted(client):
    """(those that pass, all) of the row that begins with this client."""
    with open(os.path.join(ROOT, "docs/BRIDGES.md")) as file:
        found = re.search(rf"^\| {re.escape(client)} \|.*?\| (\d+) of (\d+) \|", file.read(), re.M)
    assert found, f"docs/BRIDGES.md has no row of {client}"
    return int(found[1]), int(found[2])
