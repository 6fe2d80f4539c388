"""The passive backup on a host of its own: it joins by code, grain servers of other hosts find it because the scheduler
told them, and report to it over TLS while the scheduler is away. A process that is not it, or not one of its servers, is refused;
a host removed from the pool stays out."""
import collections
import json
import os
import signal
import subprocess
import sys

from hurry import Hurry
from pool import BIN, ROOT, free_port, process_cpu, program, tells, wait_for
from tls import TIMES, TlsPool

COUNT = 24
# The first ones wait until the scheduler is away.
GRAIN = ('echo "$0" >>"$JOURNAL"; echo "begin $0"; until [ "$0" -gt 3 ] || [ -e "$JOURNAL.away" ]; do sleep 0.1; done; '
         'sleep 0.$(($0 % 7 + 3)); echo "end $0"')
# A control program whose grain brings back more than any report may hold.
BRINGER = """
import sys
import dcs
with dcs.Session("bringer") as session:
    session.submit(1, ["/bin/sh", "-c", "sleep 2; head -c 80000000 /dev/zero >big; echo done"], outputs=["big"])
    print("submitted", flush=True)
    result = session.wait().check()
    with result.open_file("big") as file:
        body = file.read()
    print(result.output.decode(), len(body), not any(body))
"""


class BackupPool(TlsPool):
    backup_line = ""

    def __init__(self):
        super().__init__()
        self.port = free_port()
        self.env["JOURNAL"] = os.path.join(self.base, "journal")
        self.env["PYTHONPATH"] = os.path.join(ROOT, "libdcs/python")
        self.env["DCS_LIBRARY"] = os.path.join(os.path.dirname(BIN), "lib/libdcs.so")
        self.env["DCS_PATIENCE_S"] = "600"

        self.children = []

    def __exit__(self, *what):
        for child in self.children:
            child.kill()
            child.wait()
        super().__exit__(*what)

    def grain_processes(self):
        """Those that live; the files of one that has ended stay until its report was taken."""
        return [g for g in super().grain_processes() if process_cpu(g[2], g[3]) is not None]

    def table(self, *hosts):
        with open(os.path.join(self.directory, "hosts"), "w") as file:
            file.write("# the hosts of this pool\n" + self.backup_line)
            for host in hosts:
                file.write(f"{host} class=0x1 slots=2 {TIMES}\n")

    def list_backup(self):
        self.backup_line = f"bk role=backup address=127.0.0.1:{self.port}\n"
        self.table("h1", "h2")
        self.dcs("reload")

    def start_backup(self, directory="backup"):
        self.start("backup", "dcs_backupd", "--dir", os.path.join(self.base, directory), "--scheduler",
                   self.proxy.address, "--tls", f"127.0.0.1:{self.port}", "--log-level", "debug")

    def backup(self):
        result = self.dcs("backup", "status", "-o", "json", check=False)
        return json.loads(result.stdout) if result.returncode == 0 else None

    def call_backup(self, directory, name, *more):
        result = subprocess.run([os.path.join(os.path.dirname(BIN), "tests/tls_call"), f"127.0.0.1:{self.port}",
                                 directory, name, *more], stdout=subprocess.PIPE, timeout=60, text=True)
        return result.stdout

    def popen(self, *words, data=None):
        process = subprocess.Popen(words, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd="/")
        self.children.append(process)
        if data is not None:
            process.stdin.write(data)
        process.stdin.close()
        process.stdin = None
        return process


def far_backup(pool):
    return json.loads(pool.dcs("status", "-o", "json").stdout)["backup"]


def backup_joins_by_code(pool):
    assert pool.dcs("token", "create", "--role", "backup", "--host", "bk", check=False).returncode == 3
    assert not (far_backup(pool) or {}).get("host")
    pool.list_backup()
    assert far_backup(pool)["state"] == "not_joined" and "bk, has not joined" in pool.dcs("status").stdout
    words = pool.dcs("token", "create", "--role", "backup", "--host", "bk").stdout.split()
    assert words[3:6] == [f"127.0.0.1:{pool.port_number}", "--role", "backup"], words
    line = [*words[1:3], pool.proxy.address, *words[4:]]
    thief = os.path.join(pool.base, "thief")
    for other, why in ((pool.code("--host", "h1") + ["--role", "backup"], "use it without --role"),
                       ([w for w in line if w not in ("--role", "backup")], "use it with --role backup")):
        refused = pool.dcs(*other, "--dir", thief, check=False)
        assert refused.returncode == 4 and why in refused.stderr, refused
    joined = pool.dcs(*line, "--dir", os.path.join(pool.base, "backup"))
    assert tells(joined.stdout, "host bk joined pool") and "dcs_backupd" in joined.stdout, joined
    pool.start_backup()
    wait_for("the backup to reach the scheduler", lambda: (pool.backup() or {}).get("scheduler"))
    for name in ("h1", "h2"):
        pool.join(name)
        pool.start_server(name)
    pool.wait_active("h1", "h2")
    for name in ("h1", "h2"):
        pool.logged(f"{name}.log", f"passive backup bk 127.0.0.1:{pool.port}")
    members = os.path.join(pool.base, "backup/members")
    far = far_backup(pool)
    assert (far["host"], far["state"]) == ("bk", "connected") and (far["copy"] is None) == ("--mirror" not in pool.options), far
    assert "backup    bk, connected" in pool.dcs("status").stdout
    wait_for("the backup to know its servers", lambda: [line.split()[0] for line in open(members)] == ["h1", "h2"])


def nothing_is_lost_while_the_scheduler_is_away(pool):
    """Killed meanwhile: the backup, and a server. Both know what they need from their own disks."""
    process = pool.popen(program("dcs"), "map", "--new", "--attempts", "1", "--", "/bin/sh", "-c", GRAIN, "{}",
                         data="".join(f"{i}\n" for i in range(COUNT)))
    wait_for("grains", lambda: os.path.exists(pool.env["JOURNAL"]) and len(open(pool.env["JOURNAL"]).readlines()) == 4)
    pool.stop("scheduler", signal.SIGKILL)
    open(pool.env["JOURNAL"] + ".away", "w").close()
    wait_for("reports at the backup", lambda: (pool.backup() or {}).get("reports", 0) > 0)
    pool.stop("backup", signal.SIGKILL)
    pool.stop("h1", signal.SIGKILL)
    held = "reports held"
    pool.start_backup()
    pool.start_server("h1")
    wait_for("every grain that runs to end", lambda: not pool.grain_processes())
    wait_for("both servers at the backup", lambda: (pool.backup() or {}).get("servers") == 2)
    assert pool.backup()["reports"] >= 4, pool.backup()
    assert held in pool.text("backup.log")
    pool.start_scheduler()
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert out == "".join(f"begin {i}\nend {i}\n" for i in range(COUNT)), out
    runs = collections.Counter(open(pool.env["JOURNAL"]).read().split())
    assert runs == {str(i): 1 for i in range(COUNT)}, [r for r in runs.items() if r[1] > 1]
    wait_for("the backup to have handed over", lambda: (pool.backup() or {"reports": 1})["reports"] == 0)


def files_wait_on_their_host(pool):
    """What a grain brings back goes into the scheduler's library and nowhere else."""
    process = pool.popen(sys.executable, "-B", "-c", BRINGER)
    assert process.stdout.readline() == "submitted\n"
    wait_for("the grain", pool.grain_processes)
    pool.stop("scheduler", signal.SIGKILL)
    wait_for("the grain's end", lambda: not pool.grain_processes())
    wait_for("the servers at the backup", lambda: (pool.backup() or {}).get("servers") == 2)
    size = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in
               os.walk(os.path.join(pool.base, "backup")) for name in names)
    assert size < 20_000_000, f"the backup has {size} bytes"
    pool.start_scheduler()
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0 and out.split() == ["done", "80000000", "True"], (out, err)


def only_its_servers_may_come(pool):
    other = os.path.join(pool.base, "other-authority")
    cases = [  # certificate, name, what is heard
        (pool.forge("b-key", "grainserver", "h1"), "h1", "Refused: the certificate of host h1 is not accepted"),
        (pool.forge("b-h9", "grainserver", "h9"), "h9", "Refused: the certificate of host h9 is not accepted"),
        (pool.forge("b-old", "grainserver", "h1", 30, 10), "h1", "the backup refuses our certificate: it has expired"),
        (pool.forge("b-role", "client", "h1"), "h1", "the backup refuses our certificate: it is for another role"),
        (pool.forge("b-backup", "backup", "bk"), "bk", "the backup refuses our certificate: it is for another role"),
        (os.path.join(pool.base, "h1/pki"), "h2", "closed"),
    ]
    for directory, name, heard in cases:
        answer = pool.call_backup(directory, name)
        assert heard in answer and "BackupReady" not in answer, (directory, answer)
    pool.logged("backup.log", "certificate host h1 but server reports h2")
    answer = pool.call_backup(pool.forge("b-foreign", "grainserver", "h1", authority=other), "h1",
                              os.path.join(pool.directory, "pki"))
    assert "issued by another authority" in answer, answer
    assert "BackupReady" not in pool.call_backup("-", "h1", os.path.join(pool.directory, "pki"))
    assert "BackupReady" in pool.call_backup(os.path.join(pool.base, "h1/pki"), "h1")


def nobody_else_is_the_backup(pool):
    """Neither to the scheduler nor to the servers."""
    answer = pool.call(os.path.join(pool.base, "backup/pki"), "bk")
    assert "Configure" not in answer and "closed" in answer, answer
    pool.logged("scheduler.log", "FirstCall not message backup")
    os.makedirs(os.path.join(pool.base, "poser"))
    poser = [program("dcs_backupd"), "--dir", os.path.join(pool.base, "poser"), "--tls", "127.0.0.1:0",
             "--scheduler", pool.proxy.address, "--pki"]
    result = subprocess.run([*poser, os.path.join(pool.base, "h1/pki")], stderr=subprocess.PIPE, text=True, timeout=300)
    assert result.returncode == 1 and "is for a grain server, not for a passive backup" in result.stderr, result
    for name, why in (("bk", "certificate backup bk revoked"),
                      ("b2", "host b2 not backup scheduler's host table")):
        forged = pool.forge("poser-" + name, "backup", name)
        pool.start(f"poser-{name}", "dcs_backupd", *poser[1:], forged)
        pool.logged("scheduler.log", "audit backup refused " + why)
        pool.logged(f"poser-{name}.log", "refuses backup " + why)
        pool.stop(f"poser-{name}")
    assert pool.backup()["scheduler"]
    # In the right place with the wrong key, while the scheduler is away.
    pool.stop("backup")
    pool.start("poser", "dcs_backupd", "--dir", os.path.join(pool.base, "poser"), "--scheduler", pool.proxy.address,
               "--tls", f"127.0.0.1:{pool.port}", "--pki", os.path.join(pool.base, "poser-bk"))
    pool.stop("scheduler", signal.SIGKILL)
    before = pool.text("h1.log").count("not the backup that the scheduler has named")
    wait_for("h1 to turn away", lambda: pool.text("h1.log").count("not the backup that the scheduler has named") > before)
    pool.stop("poser")
    pool.start_backup()
    wait_for("both servers at the right one", lambda: (pool.backup() or {}).get("servers") == 2)
    pool.start_scheduler()
    pool.wait_active("h1", "h2")


def its_certificate_is_renewed(pool):
    pool.stop("backup")
    path = os.path.join(pool.base, "backup/pki/certificate.pem")
    pool.forge("backup/pki", "backup", "bk", 80, 90)
    before = open(path).read()
    pool.start_backup()
    wait_for("a new certificate", lambda: open(path).read() != before)
    pool.logged("backup.log", "certificate backup renewed")
    pool.logged("scheduler.log", "passive backup issued host bk")


def removal_is_for_good(pool):
    pool.dcs("host", "rm", "h2")
    members = os.path.join(pool.base, "backup/members")
    wait_for("the backup to hear of it", lambda: [line.split()[0] for line in open(members)] == ["h1"])
    answer = pool.call_backup(os.path.join(pool.base, "h2/pki"), "h2")
    assert tells(answer, "Refused certificate host h2 not accepted"), answer
    pool.dcs("host", "rm", "bk")
    pool.logged("scheduler.log", "removed host bk pool certificate revoked")
    pool.logged("backup.log", "refuses backup host bk no longer backup pool")
    pool.logged("h1.log", "pool no longer passive backup")
    assert "bk" not in open(os.path.join(pool.directory, "hosts")).read()
    pool.list_backup()  # the name may come back, the certificate does not
    pool.logged("scheduler.log", "certificate backup bk revoked must join again")
    assert not pool.backup()["scheduler"]


def main():
    with BackupPool() as pool, Hurry(pool):
        for part in (backup_joins_by_code, nothing_is_lost_while_the_scheduler_is_away, files_wait_on_their_host,
                     only_its_servers_may_come, nobody_else_is_the_backup, its_certificate_is_renewed,
                     removal_is_for_good):
            part(pool)
            print(part.__name__.replace("_", " "), flush=True)


if __name__ == "__main__":
    main()
