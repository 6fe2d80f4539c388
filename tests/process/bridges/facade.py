"""The commands of another batch system on a pool, as scripts call them."""
import os
import re
import subprocess

from pool import BIN, ROOT, wait_for

LIBEXEC = os.path.join(os.path.dirname(BIN), "libexec/dcs")


class Facade:
    def __init__(self, pool, kind):
        self.pool, self.kind, self.folder = pool, kind, os.path.join(LIBEXEC, kind)
        self.work = os.path.join(pool.base, "work-" + kind)
        os.makedirs(self.work, exist_ok=True)
        self.env = dict(pool.env, PATH=f"{self.folder}:{LIBEXEC}/slurm:{BIN}:{pool.env['PATH']}", HOME=self.work, PWD=self.work)

    def run(self, *words, code=0, data=None, cwd=None, env=None):
        """Standard output, without the last newline; standard error is in `said`."""
        done = subprocess.run(list(words), cwd=cwd or self.work, env=dict(self.env, PWD=cwd or self.work, **(env or {})), input=data,
                              text=True, timeout=300, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.said = done.stderr
        assert code is None or done.returncode == code, (words, done)
        return done.stdout.rstrip("\n")

    def refused(self, *words, code=1, **options):
        self.run(*words, code=code, **options)
        return self.said

    def write(self, name, text):
        """Whole or not there: jobs wait for some of these files."""
        path = os.path.join(self.work, name)
        with open(path + ".part", "w") as file:
            file.write(text)
        os.replace(path + ".part", path)
        return path

    def read(self, name):
        with open(os.path.join(self.work, name)) as file:
            return file.read()

    def exists(self, name):
        return os.path.exists(os.path.join(self.work, name))

    def until(self, what, condition):
        return wait_for(what, condition, timeout=300, step=0.3)

    def type_page(self):
        """The blocks of docs/BRIDGES.md: what each prints."""
        with open(os.path.join(ROOT, "docs/BRIDGES.md")) as file:
            text = file.read()
        blocks = re.findall(r"```run\n(.*?)```\n\n```output\n(.*?)```", text, re.S)
        assert len(blocks) == text.count("```run\n") >= 3
        for commands, wanted in blocks:
            assert self.run("/bin/sh", "-c", commands) + "\n" == wanted, (commands, self.said)

    def keeper(self):
        """Pids of the process that holds this pool's jobs, by the lock in its files."""
        path = os.path.join(self.pool.dir, "jobs", "keeper.lock")
        try:
            inode = os.stat(path).st_ino
        except OSError:
            return []
        return [int(words[4]) for words in map(str.split, open("/proc/locks")) if words[1] == "FLOCK" and
                words[5].rsplit(":", 1)[1] == str(inode)]
