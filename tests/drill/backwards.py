"""The part of a drill in which the order of results is what matters, and what dies dies at the worst time: the grains of one program end
in the reverse order of their numbers; some results are taken, then the scheduler is killed, and with it the program. Run again, both get
the same results in the same order. As a program, backwards.py ORDER, it is the control program of that."""
import os
import subprocess
import sys

COUNT, KILLS = 14, 3
GRAIN = 'sleep $1.$2; echo "grain $0"'


def pause(number):
    """Tenths of a second. On however few slots, those that wait behind others have to wait longer the smaller their number is."""
    return 3 * (COUNT - number) + 1


def main():
    import dcs
    taken = []
    with open(sys.argv[1], "a") as order, dcs.Session("backwards") as session:
        print("run", file=order, flush=True)
        for number in range(1, COUNT + 1):
            session.submit(number, ["/bin/sh", "-c", GRAIN, str(number), *map(str, divmod(pause(number), 10))])
        while len(taken) < COUNT:
            result = session.wait().check()
            print(result.grain, file=order, flush=True)
            assert result.output == b"grain %d\n" % result.grain, result
            taken.append(result.grain)
    print(*taken)


class Backwards:
    def __init__(self, cluster, environment):
        self.cluster, self.environment = cluster, environment
        self.order, self.out = (os.path.join(cluster.base, "backwards." + what) for what in ("order", "out"))

    def runs(self):
        """What each run of the program took, in its order."""
        if not os.path.exists(self.order):
            return []
        with open(self.order) as file:
            return [part.split() for part in file.read().split("run\n")[1:]]

    def start(self):
        from network import end_with_parent
        with open(self.out, "wb") as out:
            return subprocess.Popen([sys.executable, "-B", os.path.abspath(__file__), self.order], env=self.environment, stdout=out,
                                    stderr=out, cwd=self.cluster.base, stdin=subprocess.DEVNULL, preexec_fn=end_with_parent)

    def run(self):
        from pool import wait_for
        from workload import Wrong
        for kill in range(1, KILLS + 2):
            process, before = self.start(), len(self.runs())
            try:
                wait_for("results in the reverse order of grains", lambda: process.poll() is not None or (
                    kill <= KILLS and len(self.runs()) > before and len(self.runs()[-1]) >= 2 * kill + 1), 600)
                if process.poll() is None:
                    self.cluster.kill("scheduler")
            finally:
                process.kill()
                process.wait()
            if not self.cluster.alive("scheduler"):
                self.cluster.start("scheduler")
            if process.returncode not in (0, -9):
                with open(self.out) as file:
                    raise Wrong(f"backwards: exit code {process.returncode}\n{file.read()[-2000:]}")
        longest = max(self.runs(), key=len)
        for run in self.runs():
            if run != longest[:len(run)]:
                raise Wrong(f"backwards: the order of results changed: {run}, and {longest}")
        if sorted(map(int, longest)) != list(range(1, COUNT + 1)) or process.returncode != 0:
            raise Wrong(f"backwards: the results of the last run are those of {longest}")
        if longest == sorted(longest, key=int):
            raise Wrong("backwards: the grains ended in the order of their numbers, so nothing was seen")
        print(f"{KILLS} kills of the scheduler and of a program that had taken results: {COUNT} results in one order, {' '.join(longest)}")


if __name__ == "__main__":
    main()
