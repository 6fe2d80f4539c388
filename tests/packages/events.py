"""What happens around the blocks of docs/OPERATING.md, and what must be true then. Each event names the words of the block that it belongs to;
before(), after() or both; each has to happen."""
import json
import re

from machines import wait_for

STEPS = "for i in $(seq 1 {n}); do echo $i $$; sleep 1; done"


def one_process(printed, steps):
    """The grain's steps in order, all of one process: it was never begun again."""
    rows = [line.split() for line in printed.splitlines()]
    assert [row[0] for row in rows] == [str(i) for i in range(1, steps + 1)], printed
    assert len({row[1] for row in rows}) == 1, f"started again:\n{printed}"


class Events:
    def __init__(self, pool, command):
        self.pool, self.m, self.command = pool, pool.m, command
        self.waiting = {name[3:]: getattr(self, name) for name in dir(self) if name.startswith("on_")}
        self.happened, self.after_block = set(), []

    def before(self, block):
        self.after_block = []
        for name, event in self.waiting.items():
            if name not in self.happened and event(block):
                self.happened.add(name)

    def after(self, block, printed):
        for check in self.after_block:
            check(printed)

    def then(self, check):
        self.after_block.append(check)
        return True

    def check_all_happened(self):
        assert self.happened == set(self.waiting), set(self.waiting) - self.happened

    # ---- helpers

    def sched(self, line, user="root", code=0):
        return self.m["sched"].type(line if user == "root" else "cd /tmp; " + line, user, code)

    def main_pid(self, machine, service):
        return self.m[machine].type(f"systemctl show -P MainPID {service}").strip()

    def long_grain(self, machine, steps, mask):
        """ann's, at that machine, running."""
        words = STEPS.format(n=steps)
        command = self.command(self.m["sched"], "ann", f"cd /tmp; dcs run --class {mask} -- sh -c '{words}'")
        wait_for(f"the grain at {machine}", lambda: self.m[machine].run(f"pgrep -f 'sh -c [f]or i in ..seq 1 {steps}.'").stdout)
        return command

    def wait_copy(self):
        wait_for("the copy", lambda: re.search(r"^copy .*turn \d", self.m["vault"].type("dcs backup status --dir /var/lib/dcs", code=None), re.M),
                 timeout=120)

    def hosts_line(self, name, address):
        """`name` means another machine from now on, everywhere; the file stays the same one."""
        for machine in self.m.all.values():
            if machine.first:
                machine.type(f"sed 's/^.* {name}$/{address} {name}/' /etc/hosts >/run/hosts && cat /run/hosts >/etc/hosts")

    # ---- what happens

    def on_installation(self, block):
        if not block.section.startswith("2."):
            return False
        # A disk that can be filled.
        self.sched("mkdir -p /var/lib/dcs && mount -t tmpfs -o size=1G,mode=711 tmpfs /var/lib/dcs")

        def check(_):
            assert self.sched("systemctl show -P StatusText dcs-scheduler").strip() == "serving"
            assert self.sched("stat -c '%a %U %G' /usr/bin/dcs_begin").strip() == "755 root root"
            assert "OPERATING" in self.sched("man -w dcs-operating && zcat $(man -w dcs-operating) | head -n 3").upper()
            assert self.sched("bash -c '. /usr/share/bash-completion/completions/dcs && complete -p dcs'").startswith("complete")
        return self.then(check)

    def on_joining(self, block):
        if not (block.section.startswith("3.") and block.machine == "h1"):
            return False

        def check(_):
            wait_for("the grain server", lambda: self.m["h1"].run("systemctl is-active dcs-grainserver").stdout == "active\n")
            self.pool.wait_host("h1")
            assert self.m["h1"].type(f"ps -o ni= -p {self.main_pid('h1', 'dcs-grainserver')}").strip() == "10"
            assert "active" in self.m["h1"].type("systemctl is-active dcs-launcher")
            assert self.m["h1"].type("ls /var/lib/dcs/server/launcher.log 2>/dev/null || true") == ""  # it is in the journal
            assert "control groups: v2" in self.m["h1"].type("journalctl --no-pager -u dcs-launcher")
        return self.then(check)

    def on_second(self, block):
        if "dcs host ls" not in block.text or not block.section.startswith("3."):
            return False
        self.pool.wait_host("h2")
        return True

    def on_outsider(self, block):
        if block.user != "eve":
            return False
        return self.then(lambda printed: None)

    def on_desk(self, block):
        if block.user != "ann" or block.machine != "desk1":
            return False
        assert self.m["desk1"].type("stat -c '%a %U %G' /usr/bin/dcs_begin").strip() == "2755 root dcs-key"
        done = self.m["desk1"].run("dcs status", "eve")
        assert done.returncode != 0 and "dcs" in done.stderr, done
        # An upgrade of the package leaves it as it is.
        self.m["desk1"].type("apt install -y ./dcs/new/dcs-client_*.deb ./dcs/new/dcs-client-remote_*.deb")
        assert self.m["desk1"].type("stat -c '%a %U %G' /usr/bin/dcs_begin").strip() == "2755 root dcs-key"
        return True

    def on_mirror(self, block):
        if "dcs backup status" not in block.text:
            return False
        wait_for("the backup", lambda: self.m["vault"].run("systemctl is-active dcs-backupd").stdout == "active\n")
        return self.then(lambda _: self.wait_copy())

    def on_drain(self, block):
        if "dcs host drain" not in block.text:
            return False
        return self.then(lambda _: self.pool.wait_host("h1"))

    def on_restart(self, block):
        if "systemctl restart dcs-grainserver" not in block.text or not block.section.startswith("7."):
            return False
        grain, launcher, server = self.long_grain("h1", 15, "0x1"), self.main_pid("h1", "dcs-launcher"), self.main_pid("h1", "dcs-grainserver")

        def check(_):
            assert self.main_pid("h1", "dcs-grainserver") != server
            policy = self.m["h1"].type("ps -o cls= -p $(pgrep -f 'sh -c [f]or i in ..seq 1 15.' | head -n 1)").strip()
            assert policy == "IDL", policy
            # A server that is killed, and one that is stopped for a while.
            self.m["h1"].type("systemctl kill -s KILL --kill-whom=main dcs-grainserver; sleep 1; systemctl stop dcs-grainserver; sleep 2; "
                              "systemctl start dcs-grainserver")
            one_process(grain.end(), 15)
            assert self.main_pid("h1", "dcs-launcher") == launcher
        return self.then(check)

    def on_upgrade_of_scheduler(self, block):
        if "new/dcs-scheduler" not in block.text:
            return False
        self.grain, self.launcher = self.long_grain("h1", 45, "0x1"), self.main_pid("h1", "dcs-launcher")
        self.before_upgrade = {name: self.main_pid(*name) for name in (("sched", "dcs-scheduler"), ("h1", "dcs-grainserver"))}
        return self.then(lambda _: self.is_upgraded("sched", "dcs-scheduler", "dcs-scheduler"))

    def on_upgrade_of_server(self, block):
        if "new/dcs-grainserver" not in block.text:
            return False

        def check(_):
            self.is_upgraded("h1", "dcs-grainserver", "dcs-grainserver")
            assert self.main_pid("h1", "dcs-launcher") == self.launcher, "the launcher was restarted under its grains"
            assert self.m["h1"].type("pgrep -f 'sh -c [f]or i in ..seq 1 45.'"), "the upgrade took longer than the grain: nothing was shown"
            one_process(self.grain.end(), 45)
            wait_for("the new launcher", lambda: self.main_pid("h1", "dcs-launcher") not in (self.launcher, "0"))
            assert self.sched("dcs run --class 0x1 -- echo by the new one", "ann") == "by the new one\n"
        return self.then(check)

    def is_upgraded(self, machine, package, service):
        assert self.m[machine].type(f"dpkg-query -W -f '${{Version}}' {package}").endswith("+next")
        assert self.main_pid(machine, service) != self.before_upgrade[machine, service], "the old program still runs"
        assert self.m[machine].type(f"systemctl is-active {service}").strip() == "active"

    def on_death(self, block):
        if "dcs host rm h2" not in block.text:
            return False
        self.sched("dcs host drain h1")
        grain = self.long_grain("h2", 6, "0x3")
        self.sched("dcs host undrain h1")
        self.m["h2"].die()

        def check(printed):
            assert not re.search("^h2", printed, re.M), printed
            one_process(grain.end(), 6)  # begun again at h1, and said once
        return self.then(check)

    def on_full_disk(self, block):
        if "df -h" not in block.text:
            return False
        self.kept = self.sched("dcs run -- echo kept", "ann")
        self.sched("fallocate -l $(($(df --output=avail -B1 /var/lib/dcs/scheduler | tail -n 1) - 8192)) /var/lib/dcs/scheduler/filler")
        failed = self.m["sched"].run("cd /tmp; head -c 200000 /dev/zero | DCS_PATIENCE_S=5 dcs run -- wc -c", "ann")
        assert failed.returncode != 0 and failed.stderr, failed

        def check(printed):
            assert "disk" in printed or "space" in printed, printed
            self.sched("rm /var/lib/dcs/scheduler/filler")
            wait_for("service with room again", lambda: self.m["sched"].run("cd /tmp; dcs run -- echo again", "ann").stdout == "again\n")
        return self.then(check)

    def on_damage(self, block):
        if not block.section.startswith("8.") or block.text != "dcs doctor || true\n":
            return False
        self.sched("dcs map --session 500 -- echo {} ::: one two", "ann")
        self.sched("dcs map --session 501 -- echo {} ::: three", "ann")
        self.sched("systemctl stop dcs-scheduler")
        damage = "f=$(find /var/lib/dcs/scheduler/state/sessions -path '*/500/status'); test -n \"$f\"; " \
                 "printf 'XXXXXXXX' | dd of=$f bs=1 seek=9 conv=notrunc status=none"
        self.sched(damage + "; systemctl start dcs-scheduler")

        def check(printed):
            assert "500" in printed, printed
            assert "three" in self.sched("dcs map --session 501 -- echo {} ::: three", "ann")
        return self.then(check)

    def on_loss(self, block):
        if "promote" not in block.text:
            return False
        self.sched("dcs map --session 600 -- echo {} ::: four five", "ann")
        self.wait_copy()
        self.m["vault"].write("/root/pool-authority.tar", "")
        with open(self.m["sched"].path("/root/pool-authority.tar"), "rb") as safe, \
                open(self.m["vault"].path("/root/pool-authority.tar"), "wb") as there:
            there.write(safe.read())
        self.m["vault"].type("useradd -m -s /bin/bash -u 61101 ann && usermod -aG dcs ann")
        words = STEPS.format(n=40)
        self.sched(f"setsid dcs run --class 0x1 -- sh -c '{words}' >/dev/null 2>&1 & sleep 3", "ann")
        running = self.m["h1"].type("pgrep -f 'sh -c [f]or i in ..seq 1 40.'")
        self.m["sched"].die()
        self.hosts_line("sched", self.m.net.address["vault"])

        def check(_):
            vault = self.m["vault"]
            wait_for("h1 at the new scheduler", lambda: re.search("^h1 .*active", vault.type("dcs host ls", code=None), re.M), timeout=120)
            shown = json.loads(vault.type("dcs session ls -o json", "ann"))
            assert 600 in [row["session"] for row in shown["sessions"]], shown
            assert vault.type("cd /tmp; dcs run -- echo here", "ann") == "here\n"
            assert self.m["h1"].type("pgrep -f 'sh -c [f]or i in ..seq 1 40.'") == running, "the grain did not run on"
        return self.then(check)

    def on_removal(self, block):
        if "apt purge" not in block.text or block.machine != "h1":
            return False
        return self.then(lambda _: wait_for("no process", lambda: not self.m["h1"].run("pgrep -f '[s]eq 1 40|[d]cs_'").stdout))
