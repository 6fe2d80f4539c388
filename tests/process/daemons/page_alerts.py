"""Each alert of deploy/prometheus/alerts.yml is raised by the fault that it is for, under --full: a real pool, its page, and a
Prometheus with these rules. Their waits (`for:`) are cut to a second here; promtool tests them on a clock of its own, with the
cases of alerts_cases.yml."""
import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from pool import FULL, Pool, lock_holder, program, wait_for
from prometheus import RULES, Prometheus

HERE = os.path.dirname(os.path.abspath(__file__))


def alerts_of(path):
    return re.findall(r"- alert: (\w+)", open(path).read())


def quick_rules(base):
    path = os.path.join(base, "alerts.yml")
    text, cut = re.subn(r"(?m)^( +for:) \d+m$", r"\1 1s", open(RULES).read())
    assert cut == len(alerts_of(RULES)) - 1, "one alert waits for nothing"
    with open(path, "w") as f:
        f.write(text)
    return path


class Faults:
    """Provokes one fault after the other in a pool of three hosts of twelve slots."""

    def __init__(self, pool, prometheus):
        self.pool, self.prometheus, self.fired, self.children = pool, prometheus, set(), []

    def fires(self, alert, timeout=120):
        wait_for(f"{alert} to fire", lambda: alert in self.prometheus.firing(), timeout=timeout)
        self.fired.add(alert)
        print(alert, "fired", flush=True)

    def ends(self, alert, timeout=120):
        wait_for(f"{alert} to end", lambda: alert not in self.prometheus.firing(), timeout=timeout)

    def lock(self, *path):
        return os.path.join(self.pool.dir, *path, "lock")

    def start(self, arguments):
        self.children.append(self.pool.start(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return self.children[-1]

    def grains_that_fail(self):
        self.pool.dcs("map", "--new", "--attempts", "1", "--", "false", ":::", *map(str, range(30)), check=False)
        self.fires("DcsRunsFail")

    def nothing_runs(self):
        for host in self.pool.host_names():
            self.pool.dcs("host", "drain", host)
        self.start([program("dcs"), "map", "--new", "--", "sleep", ":::", *["1000"] * 24])
        self.fires("DcsNothingRuns")
        for host in self.pool.host_names():
            self.pool.dcs("host", "undrain", host)
        self.ends("DcsNothingRuns")

    def two_servers(self):
        second = self.start([program("dcs_grainserver"), "--name", "local1", "--dir", os.path.join(self.pool.base, "second"), "--scheduler",
                             os.path.join(self.pool.dir, "scheduler", "server.sock"), "--run-as", "self"])
        self.fires("DcsHostProblem")
        second.terminate()
        second.wait()
        self.ends("DcsHostProblem")

    def late_then_dead(self):
        """A host that stops is late, then dead; its grains move; at last there is none."""
        pool = self.pool
        wait_for("the host to run grains", lambda: pool.json("host", "ls")["hosts"][0]["running"] >= 8)
        pool.dcs("host", "set", "local1", "--limit", "1h", "--extended", "1h")
        server = lock_holder(self.lock("servers", "local1"))
        os.kill(server, signal.SIGSTOP)
        self.fires("DcsHostLate")
        os.kill(server, signal.SIGCONT)
        self.ends("DcsHostLate")
        pool.dcs("host", "set", "local1", "--reset")
        pool.kill_host("local1")
        self.fires("DcsHostNotConnected")
        self.fires("DcsHostDead")
        self.fires("DcsGrainsMoveOften")
        pool.kill_host("local2")
        pool.kill_host("local3")
        self.fires("DcsNoActiveHost")
        for child in self.children:
            child.kill()
            child.wait()
        self.children = []
        pool.up()
        pool.dcs("session", "close", "2")
        for alert in ("DcsHostDead", "DcsNoActiveHost", "DcsHostNotConnected"):
            self.ends(alert)

    def backup_holds(self):
        """The scheduler is away while grains end; then the backup comes back with a wrong address of the scheduler."""
        pool, held = self.pool, os.path.join(self.pool.dir, "backup")
        self.start([program("dcs"), "map", "--new", "--", "sleep", ":::", "6"])
        wait_for("the grain to run", lambda: pool.json("status")["running"] == 1)
        pool.kill("scheduler", "scheduler")
        self.fires("DcsSchedulerDown")
        wait_for("the backup to hold a report", lambda: pool.json("backup", "status")["reports"] > 0)
        self.kill_backup()
        backup = self.start([program("dcs_backupd"), "--dir", held, "--scheduler", os.path.join(held, "no.sock")])
        wait_for("the backup", lambda: lock_holder(self.lock("backup")) == backup.pid)
        pool.up()
        self.ends("DcsSchedulerDown")
        self.fires("DcsBackupHoldsReports")
        self.kill_backup()
        pool.up()
        self.ends("DcsBackupHoldsReports")

    def kill_backup(self):
        pid = lock_holder(self.lock("backup"))
        os.kill(pid, signal.SIGKILL)
        wait_for("the end of the backup", lambda: lock_holder(self.lock("backup")) is None)

    def copy_behind(self):
        """The backup stops: it does not answer, and the copy of the store falls behind."""
        backup = lock_holder(self.lock("backup"))
        os.kill(backup, signal.SIGSTOP)
        try:
            self.start([program("dcs"), "map", "--new", "--", "sleep", ":::", "1000"])
            self.fires("DcsBackupDown")
            self.fires("DcsCopyBehind", timeout=300)
        finally:
            os.kill(backup, signal.SIGCONT)
        self.ends("DcsCopyBehind")
        self.ends("DcsBackupDown")

    def damaged_session(self):
        pool = self.pool
        session = str(pool.json("session", "ls")["sessions"][-1]["session"])
        pool.stop_scheduler()
        spoilt = 0
        for where, _, names in os.walk(os.path.join(pool.dir, "scheduler/state/sessions")):
            for name in names:
                if f"/{session}" in where + "/" and os.path.getsize(os.path.join(where, name)) > 0:
                    with open(os.path.join(where, name), "r+b") as f:
                        f.write(b"\0" * 64)
                    spoilt += 1
        assert spoilt > 0
        pool.up()
        self.fires("DcsSessionDamaged")

    def host_leaves(self):
        """Administration raises nothing: the host that finished everything leaves the table."""
        pool = self.pool
        before = self.prometheus.value('sum(dcs_grain_finishes_total{result="finished"})')
        pool.dcs("map", "--new", "--", "true", ":::", *map(str, range(60)))
        wait_for("the ends to be counted", lambda: self.prometheus.value('sum(dcs_grain_finishes_total{result="finished"})') >= before + 60)
        resets = 'sum(resets(dcs_grain_finishes_total[1h]))'
        assert self.prometheus.value(resets) == 0
        self.ends("DcsRunsFail")
        pool.dcs("host", "rm", "local3")
        wait_for("the host to have left", lambda: self.prometheus.value("sum(dcs_hosts)") == 2)
        wait_for("a rule to be judged", lambda: self.prometheus.value('count_over_time(dcs_up[3s])') is not None)
        assert self.prometheus.value(resets) == 0, "a counter fell"
        assert "DcsRunsFail" not in self.prometheus.firing()

    def backup_elsewhere(self):
        """The host table names a backup that has not come."""
        table = os.path.join(self.pool.dir, "scheduler/hosts")
        with open(table, "a") as f:
            f.write("bk role=backup address=127.0.0.1:1\n")
        self.pool.dcs("reload")
        wait_for("the doctor to name it", lambda: any(p["entity"] == "backup bk" for p in self.pool.json("doctor", check=False)["problems"]))
        self.fires("DcsBackupDown")

    def reload_fails(self):
        table = os.path.join(self.pool.dir, "scheduler/hosts")
        good = open(table).read()
        open(table, "w").close()
        assert self.pool.dcs("reload", check=False).returncode == 1
        self.fires("DcsReloadFailed")
        with open(table, "w") as f:
            f.write(good)
        self.pool.dcs("reload")
        self.ends("DcsReloadFailed")

    def full_disk(self):
        filler = os.path.join(self.pool.dir, "filler")
        room = os.statvfs(self.pool.dir)
        with open(filler, "wb") as f:
            os.posix_fallocate(f.fileno(), 0, room.f_bavail * room.f_frsize - (40 << 20))
        self.fires("DcsDiskNearlyFull")
        os.remove(filler)
        self.ends("DcsDiskNearlyFull")

    def page_ends(self, page):
        page.kill()
        page.wait()
        self.fires("DcsPageDown")
        assert "DcsNoFigures" not in self.prometheus.firing()

    def job_is_gone(self):
        self.prometheus.scrape_nothing()
        self.fires("DcsNoFigures")


if not FULL:
    print("only under --full")
    sys.exit(77)
if not shutil.which("prometheus") or not shutil.which("promtool"):
    print("prometheus is not installed")
    sys.exit(77)
if os.getuid() != 0:
    print("not root: a small disk cannot be made")
    sys.exit(77)


def short_lived_access(base):
    """For a page whose certificate ends in five days."""
    access = os.path.join(base, "access")
    os.mkdir(access)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "5",
                    "-subj", "/CN=page", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                    "-keyout", f"{access}/key.pem", "-out", f"{access}/certificate.pem"], check=True, stderr=subprocess.DEVNULL)
    os.chmod(f"{access}/key.pem", 0o600)
    return access


subprocess.run(["promtool", "test", "rules", os.path.join(HERE, "alerts_cases.yml")], check=True)
disk = tempfile.mkdtemp(prefix="dcs-test-")
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600m", "dcs-test", disk], check=True)
atexit.register(lambda: (subprocess.run(["umount", disk], check=True), os.rmdir(disk)))
with Pool(servers=3, slots=12, interval=0.5, directory=os.path.join(disk, "pool"), patient=False) as pool:
    pool.dcs("up", "--mirror", "lagging", "--dir", pool.dir)
    page = pool.start([program("dcs"), "page", "--listen", "127.0.0.1:0", "--access", short_lived_access(pool.base),
                       "--interval", "0.5", "-o", "name"], stdout=subprocess.PIPE)
    url = page.stdout.readline().decode().strip()
    prometheus = Prometheus(pool.base, url, quick_rules(pool.base), os.path.join(pool.base, "access"))
    faults = Faults(pool, prometheus)
    try:
        wait_for("the first scrape", lambda: prometheus.value("dcs_up") == 1)
        faults.fires("DcsCertificateEnds")
        wait_for("a healthy pool otherwise", lambda: prometheus.firing() == {"DcsCertificateEnds"})
        faults.grains_that_fail()
        faults.two_servers()
        faults.nothing_runs()
        faults.late_then_dead()
        faults.backup_holds()
        faults.copy_behind()
        faults.backup_elsewhere()
        faults.reload_fails()
        faults.full_disk()
        faults.damaged_session()
        faults.host_leaves()
        faults.page_ends(page)
        faults.job_is_gone()
        assert faults.fired == set(alerts_of(RULES)), set(alerts_of(RULES)) - faults.fired
    finally:
        page.kill()
        page.stdout.close()
        prometheus.end()
        for child in faults.children:
            child.kill()
            child.wait()
print(f"{len(faults.fired)} alerts fired, each by its fault")
