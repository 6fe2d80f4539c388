"""The last part of a drill: nothing but outages of the scheduler, with the backup killed in each, and the hand-over interrupted.
What the backup has acknowledged is not done again, so here every grain must have run exactly once."""
import collections
import os
import subprocess
import time

from cluster import SERVERS
from network import end_with_parent
from pool import wait_for
from workload import Wrong

COUNT, OUTAGES = 48, 3
GRAIN = 'echo "$0" >>"$JOURNAL"; sleep 0.$(($0 % 7 + 2)); echo "calm $0"'
PATIENT = "interval=0.5 alert=30 limit=60 extended=120"  # however busy this machine is, no host is given up


class Calm:
    def __init__(self, rng, cluster):
        self.rng, self.cluster = rng, cluster
        self.journal = os.path.join(cluster.base, "journal")
        self.process, self.handed_over = None, 0

    def start(self):
        cluster = self.cluster
        cluster.write_table(times=PATIENT)
        cluster.dcs("reload")
        wait_for("all hosts", lambda: all(h["connected"] for h in cluster.json("host", "ls")["hosts"]), 600)
        args = os.path.join(cluster.base, "calm.args")
        with open(args, "w") as file:
            file.writelines(f"{i}\n" for i in range(COUNT))
        return subprocess.Popen([os.path.join(cluster.bin, "dcs"), "map", "--new", "--attempts", "1", "-a", args, "--",
                                 "/bin/sh", "-c", GRAIN, "{}"], env=dict(cluster.env, JOURNAL=self.journal),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cluster.base,
                                preexec_fn=end_with_parent)

    def outage(self):
        cluster = self.cluster
        wait_for("grains", lambda: self.held() or self.process.poll() is not None, 600)
        cluster.kill("scheduler")
        wait_for("reports at the backup", lambda: self.reports() > 0 or not self.held(), 600)
        if self.reports() == 0:  # what ran had just been reported to the scheduler
            cluster.start("scheduler")
            return wait_for("the scheduler", lambda: cluster.dcs("host", "ls", check=False).returncode == 0, 600)
        cluster.kill("backup")
        cluster.start("backup")
        time.sleep(self.rng.uniform(0.5, 1.5))
        for _ in range(2):  # in the midst of the hand-over, or before, or after
            cluster.start("scheduler")
            wait_for("the scheduler", lambda: cluster.dcs("host", "ls", check=False).returncode == 0, 600)
            time.sleep(self.rng.uniform(0, 0.6))
            cluster.kill("scheduler")
        cluster.start("scheduler")
        wait_for("the backup to have handed over", self.drained, 600)
        self.handed_over += 1
        return True

    def reports(self):
        return (self.cluster.backup_status() or {}).get("reports", 0)

    def held(self):
        """Grains of which a server has something that no other process has; directories kept for reuse are of none."""
        return [entry for name in SERVERS for entry in os.listdir(os.path.join(self.cluster.directory(name), "grains"))
                if not entry.startswith("spare-")]

    def drained(self):
        status = self.cluster.backup_status()
        return status and status["scheduler"] and status["reports"] == 0

    def run(self):
        process = self.process = self.start()
        try:
            wait_for("grains", lambda: self.cluster.grain_processes() or process.poll() is not None, 600)
            for _ in range(3 * OUTAGES):  # or it would never end with a backup that keeps nothing
                if self.handed_over < OUTAGES and process.poll() is None:
                    self.outage()
            out, err = process.communicate(timeout=600)
        finally:
            process.kill()
            process.wait()
        if process.returncode != 0 or out != "".join(f"calm {i}\n" for i in range(COUNT)):
            raise Wrong(f"calm: exit code {process.returncode}, output {out!r}\n{err[-2000:]}")
        runs = collections.Counter(open(self.journal).read().split())
        again = {grain: times for grain, times in runs.items() if times > 1}
        if again:
            raise Wrong(f"calm: run more than once, though nothing but scheduler and backup was killed: {again}")
        print(f"{self.handed_over} outages more with nothing else, the backup killed in each: {COUNT} grains ran once each")
