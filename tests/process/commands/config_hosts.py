#!/usr/bin/python3
"""The host table from an inventory or a list of logins, into the table of a scheduler that runs; and what is refused."""
import json
import os

from config import World
from pool import Pool, tells

INVENTORY = """[compute]
h1 dcs_slots=8
h2 dcs_slots=2 dcs_class=0x2
[other]
h7 dcs_slots=1
"""


def main():
    world = World()
    try:
        table = os.path.join(world.pool, "scheduler", "hosts")
        world.hosts("# by hand\nh1 slots=1 interval=2   # ours\nh3 slots=3\n")
        os.chmod(table, 0o640)
        world.start("scheduler")
        inventory = os.path.join(world.base, "inventory")
        with open(inventory, "w") as file:
            file.write(INVENTORY)

        before = open(table).read()
        said = world.dcs("host", "import", "--ansible", inventory, "--group", "compute", "--dry-run").stdout
        assert said.splitlines() == ["- h1 slots=1 interval=2   # ours", "+ h1 slots=8 interval=2   # ours",
                                     "+ h2 class=0x2 slots=2", f"{table}: 1 host new, 1 changed, 0 as they are; nothing was written"], said
        assert open(table).read() == before

        world.dcs("host", "import", "--ansible", inventory, "--group", "compute")
        assert open(table).read() == "# by hand\nh1 slots=8 interval=2   # ours\nh3 slots=3\nh2 class=0x2 slots=2\n"
        assert os.stat(table).st_mode & 0o777 == 0o640
        world.dcs("reload")
        hosts = {h["name"]: h for h in json.loads(world.dcs("host", "ls", "-o", "json").stdout)["hosts"]}
        assert hosts["h1"]["slots"] == 8 and hosts["h2"]["class"] == 2 and hosts["h3"]["slots"] == 3 and len(hosts) == 3, hosts

        again = json.loads(world.dcs("host", "import", "--ansible", inventory, "--group", "compute", "-o", "json").stdout)
        assert not again["written"] and [h["change"] for h in again["hosts"]] == ["same", "same"], again

        # A table that the scheduler would not take is not written.
        before = open(table).read()
        with open(inventory, "w") as file:
            file.write("h9 dcs_slots=many\n")
        said = world.dcs("host", "import", "--ansible", inventory, code=2).stderr
        assert tells(said, "new host table errors") and tells(said, "line 5 slots must number"), said
        with open(inventory, "w") as file:
            file.write("h9 dcs_shoes=2\n")
        assert "unknown setting `shoes`" in world.dcs("host", "import", "--ansible", inventory, code=2).stderr
        assert open(table).read() == before and not [n for n in os.listdir(os.path.dirname(table)) if "import" in n]

        logins = os.path.join(world.base, "logins")
        with open(logins, "w") as file:
            file.write("4/ann@h5.example\nh3\n")
        world.dcs("host", "import", "--sshlogin", logins)
        assert open(table).read() == before + "h5.example slots=4\n"
        with open(logins, "w") as file:
            file.write("0/h1\n")
        assert tells(world.dcs("host", "import", "--sshlogin", logins, code=2).stderr, f"{logins}:1: 0/h1 number jobs")
        assert tells(world.dcs("host", "import", code=2).stderr, "no source given")
        assert tells(world.dcs("host", "import", "--ansible", "a", "--sshlogin", "b", code=2).stderr, "no source given")
        assert "--group needs --ansible" in world.dcs("host", "import", "--sshlogin", "b", "--group", "g", code=2).stderr
        assert "no hosts were read" in world.dcs("host", "import", "--sshlogin", logins + "no", code=3).stderr

        # Any table, also one that is not there yet.
        other = os.path.join(world.base, "table")
        with open(logins, "w") as file:
            file.write("2/h1\n")
        world.dcs("host", "import", "--sshlogin", logins, "--table", other)
        assert open(other).read() == "h1 slots=2\n"
    finally:
        world.close()
    with Pool(servers=1) as pool:
        said = pool.dcs("host", "import", "--sshlogin", "/dev/null", check=False)
        assert said.returncode == 4 and tells(said.stderr, "writes host table"), said


if __name__ == "__main__":
    main()
