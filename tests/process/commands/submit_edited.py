#!/usr/bin/python3
"""`dcs submit` again after a file was changed: it is named, whether the job is complete or not; what grains of the job have made,
and a program that is as it was, are not."""
import os
import re
import subprocess
import time

from pool import Pool, about, wait_for
from submit import Desk


class Editor(Desk):
    def edit(self, name, text, old=None):
        """As an editor does; old: moved to its place, with this time of modification."""
        begun = time.time_ns()
        while True:  # the clock of files is behind that of programs
            path = os.path.join(self.folder, self.write("edited", text))
            os.utime(path, None if old is None else (old, old))
            os.rename(path, os.path.join(self.folder, name))
            if os.stat(os.path.join(self.folder, name)).st_ctime_ns // 10**6 > begun // 10**6:
                return

    def changed(self, *line):
        """What `dcs submit` says of changed files, if anything; and how the job ended."""
        done = self.submit("--wait", *line, check=False)
        return re.findall(r"warning: (\S+) has changed since session \d+ began; (?:unless grains that name it wrote it, )?results from before .*--new runs all", done.stderr.decode()), done


def edited_program(desk):
    """Results of two versions of a program are not mixed without a word; and what a grain wrote is no change."""
    script = "#!/bin/sh\necho one >${1:-/dev/null}; echo $1\n"  # only the grain that names the file writes it
    desk.write("part.sh", script)
    os.chmod(os.path.join(desk.folder, "part.sh"), 0o755)
    desk.write("edited.toml", """[[grain]]
name = "itself"
command = ["./part.sh", "made"]
[[grain]]
name = "shell"
command = ["sh", "./part.sh"]
[[grain]]
name = "last"
command = ["test", "-e", "whole"]
""")
    assert desk.submit("--wait", "edited.toml", check=False).returncode == 10
    again = desk.submit("--wait", "edited.toml", check=False)
    assert again.returncode == 10 and not about(again.stderr.decode(), "has changed"), again
    desk.write("part.sh", script.replace("one", "two"))
    desk.write("whole", "")
    changed = desk.submit("--wait", "edited.toml")
    assert about(changed.stderr.decode(), "warning: ./part.sh has changed since session results before kept --new runs all"), changed
    complete = desk.submit("--wait", "edited.toml").stderr.decode()
    assert about(complete, "part.sh has changed since is complete"), complete
    assert not about(desk.submit("--wait", "--new", "edited.toml").stderr.decode(), "has changed")
    desk.write("input", "first")
    desk.write("brings.toml", """[[grain]]
name = "reads"
command = ["grep", "second", "input"]
file = "input"
""")
    assert desk.submit("--wait", "brings.toml", check=False).returncode == 10
    desk.write("input", "second")
    assert about(desk.submit("--wait", "brings.toml").stderr.decode(), "1 of 1 grain failed tried again"), "with the file of now"
    desk.edit("input", "third")  # of a grain that has succeeded
    told, kept = desk.changed("brings.toml")
    assert told == ["input"] and about(kept.stderr.decode(), "is complete") and about(kept.stdout.decode(), "1 grain 0 failed"), kept


def edited_data(desk):
    """A result of an earlier version of a file that the grain names is not given without a word; files that the job makes,
    and works on, are no such files."""
    for name in "data.csv", "extra", "part.1", "part.2", "bring.2", "image":
        desk.write(name, "old")
    desk.write("join", "#!/bin/sh\ncat data.csv extra >made\n")
    os.chmod(os.path.join(desk.folder, "join"), 0o755)
    desk.write("data.toml", """[[grain]]
name = "join"
command = ["./join", "data.csv", "--more=extra", "made"]
[[grain]]
name = "count"
command = ["wc", "made"]
after = "join"
[[grain]]
name = "parts"
command = ["cat", "part.{}"]
array = "1-2"
[[grain]]
name = "bring"
command = ["cp", "extra", "result"]
file = ["extra=bring.{}", "data.csv=part.1"]
output = "result=brought.{}"
array = "2"
[[grain]]
name = "brought"
command = ["cat", "brought.2"]
after = "bring"
""")
    assert desk.changed("data.toml")[0] == []
    assert about(desk.submit("data.toml").stderr.decode(), "is complete")
    desk.edit("made", "by hand")
    assert desk.changed("data.toml")[0] == ["made"], "now it is another's"
    desk.submit("--wait", "--new", "data.toml")
    for name in "data.csv", "extra", "part.2", "part.1", "bring.2":
        desk.edit(name, "new", old=10**9)
        told, kept = desk.changed("data.toml")
        assert told == [name] and kept.returncode == 0 and about(kept.stderr.decode(), "is complete"), (name, kept)
        assert about(desk.submit("data.toml").stderr.decode(), f"warning {name} has changed"), "without --wait, too"
        assert desk.changed("--new", "data.toml")[0] == desk.changed("data.toml")[0] == [], name
    os.remove(os.path.join(desk.folder, "brought.2"))
    desk.submit("--wait", "data.toml")
    assert os.path.exists(os.path.join(desk.folder, "brought.2")) and desk.changed("data.toml")[0] == [], "written again"
    desk.write("same.toml", '[[grain]]\ncommand = ["./join"]\n[[grain]]\ncommand = ["sh", "./join"]\n')
    desk.submit("--wait", "same.toml")
    desk.edit("join", open(os.path.join(desk.folder, "join")).read())
    os.chmod(os.path.join(desk.folder, "join"), 0o755)
    assert desk.changed("same.toml")[0] == [], "the same program"


def edited_on_the_way(desk):
    """The first of two grains that name a file has succeeded; the other runs, and then fails."""
    desk.write("table", "old")
    desk.write("way.toml", """[[grain]]
name = "first"
command = ["cat", "table"]
[[grain]]
name = "other"
command = ["sh", "-c", "until test -e go-now; do sleep 0.1; done; grep new $1", "sh", "table"]
array = "1-2"
after = "first"
""")
    run = subprocess.Popen([desk.pool.bin + "/dcs", "submit", "--wait", "way.toml"], env=desk.pool.env, cwd=desk.folder, stderr=subprocess.DEVNULL)
    wait_for("the other", lambda: "running" in [r["state"] for r in desk.pool.json("grain", "ls", "last", check=False).get("grains", [])
                                                if r["grain"] > 1])
    run.kill()
    run.wait()
    desk.write("go-now", "")
    told, failed = desk.changed("way.toml")
    assert told == [] and failed.returncode == 10, failed
    desk.edit("table", "new")
    told, done = desk.changed("way.toml")
    assert told == ["table"] and done.returncode == 0, done
    told, done = desk.changed("way.toml")
    assert told == ["table"] and about(done.stderr.decode(), "unless grains that name it wrote it is complete"), done


def edited_meanwhile(desk):
    """A program that is edited while the job runs: its results of both versions are not taken without a word."""
    desk.write("old.sh", "#!/bin/sh\necho old; test ! -e new.sh || mv new.sh old.sh\n")
    desk.write("new.sh", "#!/bin/sh\necho new\n")
    for name in "old.sh", "new.sh":
        os.chmod(os.path.join(desk.folder, name), 0o755)
    desk.write("meanwhile.toml", """[[grain]]
name = "first"
command = ["./old.sh"]
[[grain]]
name = "then"
command = ["./old.sh", "again"]
after = "first"
""")
    told, done = desk.changed("meanwhile.toml")
    assert len(told) == 1 and told[0].endswith("/old.sh") and done.returncode == 0, done
    assert desk.pool.dcs("session", "cat", "last").stdout == b"old\nnew\n"
    assert desk.changed("--new", "meanwhile.toml")[0] == []


def edited_between(desk):
    """What an earlier step has left is there again for a failed one that runs again, as that left it."""
    desk.write("between.toml", """[[grain]]
name = "makes"
command = ["sh", "-c", "echo whole >part"]
output = "part"
[[grain]]
name = "reads"
command = ["sh", "-c", "cat part; test -e $1/enough", "sh", "FOLDER"]
after = "makes"
file = "part"
""".replace("FOLDER", desk.folder))
    part = os.path.join(desk.folder, "part")

    def read():
        with open(part) as file:
            return file.read()
    assert desk.submit("--wait", "between.toml", check=False).returncode == 10
    os.remove(part)
    assert desk.submit("--wait", "between.toml", check=False).returncode == 10 and read() == "whole\n"
    desk.write("part", "changed\n")
    assert desk.submit("--wait", "between.toml", check=False).returncode == 10 and read() == "whole\n"
    desk.write("part", "changed\n")
    desk.write("enough", "")
    desk.submit("--wait", "between.toml")
    assert read() == "whole\n" and desk.pool.dcs("grain", "cat", "last:2").stdout == b"whole\n"


def main():
    with Pool(servers=2, slots=4) as pool:
        desk = Editor(pool)
        edited_program(desk)
        edited_data(desk)
        edited_on_the_way(desk)
        edited_meanwhile(desk)
        edited_between(desk)


main()
