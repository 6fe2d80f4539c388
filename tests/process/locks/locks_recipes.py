#!/usr/bin/python3
"""docs/LOCK_RECIPES.md, block by block: each is read from the page and run. Programs that the page only names are made
here: they note that they began, wait until they may end, and note that. A limit that is to end one is divided by 600."""
import os
import re
import shutil
import subprocess

from lock_box import TEST_LOCK, Box, cases, later, runs, skip, wait_for
from pool import BIN, ROOT

PAGE = open(os.path.join(ROOT, "docs/LOCK_RECIPES.md")).read()
BLOCKS = {name: (kind, text) for name, kind, text in
          re.findall(r"<!-- recipe: ([a-z-]+) -->\n```(\w+)\n(.*?)```", PAGE, re.S)}
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
PROGRAMS = ("backup-home", "update-motd", "make-report", "convert-image", "print-page", "sync-mail", "rebuild-table", "edit-file",
            "fetch-from")
STAND_IN = """#!/bin/sh
echo "begin $(basename $0) $*" >>"$NOTES"
while [ -e "$HOLD" ]; do sleep 0.05; done
sleep ${SECONDS_EACH:-0}
echo "end $(basename $0) $*" >>"$NOTES"
exit ${EXIT:-0}
"""


def shortened(text):
    return re.sub(r"(?<=[ =\'])(\d+)([smhd])\b", lambda m: f"{int(m[1]) * SECONDS[m[2]] / 600:.3f}s", text)


class Recipe(Box):
    def __init__(self, name):
        super().__init__()
        self.kind, self.text = BLOCKS[name]
        bin = self.path("bin-of-programs")
        os.mkdir(bin)
        for program in PROGRAMS:
            with open(os.path.join(bin, program), "w") as file:
                file.write(STAND_IN)
            os.chmod(os.path.join(bin, program), 0o755)
        os.symlink(TEST_LOCK, os.path.join(bin, "dcs_lock"))
        self.env.update(PATH=f"{bin}:{self.env['PATH']}", NOTES=self.path("notes"), HOLD=self.path("hold"))
        text = (shortened(self.text) if name == "hung" else self.text).replace("/etc/motd", self.path("motd")).replace("/home/ann", self.path("home"))
        if self.kind == "crontab":
            text = "\n".join(line.split(None, 5)[5] for line in text.splitlines())
        self.script = self.path("script.sh")
        with open(self.script, "w") as file:
            file.write(text)

    def begin(self, *words, **env):
        shell = "perl" if self.kind == "perl" else "sh"
        process = subprocess.Popen([shell, self.script, *words], env=dict(self.env, **env), cwd=self.base, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        return process

    def whole(self, code=0, **env):
        process = self.begin(**env)
        out, err = process.communicate(timeout=120)
        assert process.returncode == code, (process.returncode, self.text, out, err)
        return out + err

    def hold_up(self):
        open(self.path("hold"), "w").close()

    def go_on(self):
        os.remove(self.path("hold"))

    def notes(self):
        try:
            return [line.rstrip() for line in open(self.path("notes"))]
        except OSError:
            return []

    def one_while_held(self, second_code):
        """The block begins twice, the second time while the first one's program runs."""
        self.hold_up()
        first = self.begin()
        wait_for("the first to begin", lambda: self.notes())
        second = self.whole(second_code)
        assert len(self.notes()) == 1, self.notes()
        self.go_on()
        assert first.wait(60) == 0 and len(self.notes()) == 2
        return second


def most_at_once(notes):
    now = most = 0
    for line in notes:
        now += 1 if line.startswith("begin") else -1
        most = max(most, now)
    return most


def test_the_page_and_this_test_know_the_same_recipes():
    tested = {name[len("test_recipe_"):].replace("_", "-") for name in globals() if name.startswith("test_recipe_")}
    assert tested == set(BLOCKS), tested ^ set(BLOCKS)
    assert PAGE.count("```") == 2 * len(BLOCKS), "a block without a name is not run"


def test_recipe_cron_one_at_a_time():
    with Recipe("cron-one-at-a-time") as recipe:
        assert recipe.one_while_held(0) == ""  # cron writes no mail


def test_recipe_cron_adaptive():
    with Recipe("cron-adaptive") as recipe:
        recipe.one_while_held(1)  # busy is an error for cron
        assert "again in" in recipe.whole(0) and len(recipe.notes()) == 2  # too soon is none
        assert recipe.whole(0, **later(901)) == ""  # a quarter of an hour
        assert len(recipe.notes()) == 4


def units(name, suffix):
    if not shutil.which("systemd-analyze"):
        return skip(name, "needs systemd-analyze")
    with Recipe(name) as recipe:
        text = recipe.text.replace("/usr/bin/dcs_lock", os.path.join(BIN, "dcs_lock")).replace("/usr/bin/update-motd", "/bin/true")
        path = recipe.path("motd" + suffix)
        for unit in ((path, text), (recipe.path("motd.service"), "[Service]\nExecStart=/bin/true\n")):
            if not os.path.exists(unit[0]):
                open(unit[0], "w").write(unit[1])
        result = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", path], stderr=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True, env=dict(recipe.env, SYSTEMD_LOG_LEVEL="warning"))
        about = [line for line in result.stderr.splitlines() if "motd" in line]
        assert result.returncode == 0 and not about, result
        return text


def test_recipe_systemd_service():
    text = units("systemd-service", ".service")
    with Recipe("systemd-service") as recipe:
        line = re.search(r"ExecStart=(.*)", recipe.text)[1].replace("/usr/bin/", "")
        open(recipe.script, "w").write("exec " + line.replace("/etc/motd", recipe.path("motd")) + "\n")
        recipe.hold_up()
        service = recipe.begin()
        wait_for("the program to begin", lambda: recipe.notes())
        assert b"update-motd" in open(f"/proc/{service.pid}/cmdline", "rb").read()  # what systemd watches is the command
        recipe.whole(75)
        recipe.go_on()
        assert service.wait(60) == 0
        wait_for("the keeper to write it down", lambda: recipe.list()[0]["state"] == "free")
        recipe.whole(79)
        success = re.search(r"SuccessExitStatus=(.*)", text or recipe.text)[1].split()
        assert success == ["75", "79"]


def test_recipe_systemd_timer():
    units("systemd-timer", ".timer")


def test_recipe_instead_of_flock():
    with Recipe("instead-of-flock") as recipe:
        recipe.whole(0)
        assert len(recipe.notes()) == 6
        recipe.hold_up()
        first = recipe.begin()
        wait_for("the fourth to begin", lambda: len(recipe.notes()) == 7)
        second = recipe.begin()
        wait_for("the second to wait", lambda: len(recipe.own_processes()) >= 4)
        recipe.go_on()
        codes = sorted((first.wait(60), second.wait(60)))
        assert codes in ([0, 0], [0, 75]), codes  # its last line does not wait
        assert most_at_once([n for n in recipe.notes()]) <= 2
        busy = subprocess.run(["flock", recipe.path("backup.lock"), "dcs_lock", "-n", recipe.path("backup.lock"), "true"],
                              env=recipe.env, stderr=subprocess.DEVNULL).returncode
        assert busy == 75


def test_recipe_flock_by_name():
    with Recipe("flock-by-name") as recipe:
        recipe.one_while_held(1)


def test_recipe_script_once():
    with Recipe("script-once") as recipe:
        recipe.one_while_held(75)


def test_recipe_descriptor():
    with Recipe("descriptor") as recipe:
        recipe.one_while_held(75)


def test_recipe_at_most_n():
    with Recipe("at-most-n") as recipe:
        recipe.whole(0, SECONDS_EACH="0.2")
        assert len(recipe.notes()) == 12 and most_at_once(recipe.notes()) == 2, recipe.notes()


def test_recipe_several_limits():
    with Recipe("several-limits") as recipe:
        recipe.hold_up()
        first = []
        for host in "abcd":
            first.append(recipe.begin(host))
            wait_for("it to begin", lambda: len(recipe.notes()) == len(first))
            assert recipe.begin(host).wait(60) == 75, "one for each host"
        assert recipe.begin("e").wait(60) == 75, "four in all"
        recipe.go_on()
        assert [process.wait(60) for process in first] == [0] * 4
        assert {lock["name"] for lock in recipe.list()} >= {"fetch", "fetch-a"}


def test_recipe_user_and_total():
    with Recipe("user-and-total") as recipe:
        shared = recipe.path("reports")
        os.mkdir(shared)
        os.chmod(shared, 0o1777)
        os.chmod(recipe.base, 0o755)
        text = open(recipe.script).read().replace("/srv/reports", shared).replace("total:10", "total:3")
        open(recipe.script, "w").write(text)
        assert "total:3" in text
        users = [0, 65533, 65534] if os.geteuid() == 0 else [os.geteuid()]
        if len(users) == 1:
            skip("user-and-total", "only root can be several users")
        notes = os.open(recipe.path("notes"), os.O_CREAT, 0o666)
        os.fchmod(notes, 0o666)
        os.close(notes)
        begun = []

        def begin(uid):
            folder = recipe.path(f"home{uid}")
            os.makedirs(folder, exist_ok=True)
            os.chown(folder, uid, -1)
            process = subprocess.Popen(["sh", recipe.script], env=dict(recipe.env, DCS_LOCK_DIR=folder), cwd="/", user=uid)
            recipe.started.append(process)
            return process

        def runs_for(uid):
            begun.append(begin(uid))
            wait_for("it to begin", lambda: len(recipe.notes()) == len(begun))
        recipe.hold_up()
        runs_for(users[-1])
        runs_for(users[-1])
        assert begin(users[-1]).wait(60) == 75, "two for each user"
        if len(users) > 1:
            runs_for(users[1])
            assert begin(users[1]).wait(60) == 75 and begin(users[0]).wait(60) == 75, "three in all"
        recipe.go_on()
        assert [process.wait(60) for process in begun] == [0] * len(begun)


def test_recipe_in_order():
    with Recipe("in-order") as recipe:
        recipe.hold_up()
        jobs = [recipe.begin("1")]
        wait_for("the first to begin", lambda: recipe.notes())
        for page in ("2", "3", "4"):
            jobs.append(recipe.begin(page))
            wait_for("the job to queue", lambda: recipe.waiting("printer") == len(jobs) - 1)
        recipe.go_on()
        assert [job.wait(60) for job in jobs] == [0] * 4
        pages = [line.split()[-1] for line in recipe.notes() if line.startswith("begin")]
        assert pages == ["1", "2", "3", "4"] and most_at_once(recipe.notes()) == 1, recipe.notes()


def test_recipe_hung():
    with Recipe("hung") as recipe:
        recipe.hold_up()
        assert "its limit" in recipe.whole(124)
        assert recipe.notes() == ["begin sync-mail"]


def test_recipe_readers():
    with Recipe("readers") as recipe:
        recipe.hold_up()
        process = recipe.begin()
        wait_for("both readers", lambda: len(recipe.notes()) == 2)
        writer = recipe.run("-n", "table", "true", code=75)
        assert "share" in writer.stderr, writer
        recipe.go_on()
        assert process.wait(60) == 0
        assert recipe.notes()[-2:] == ["begin rebuild-table", "end rebuild-table"]


def test_recipe_get_put():
    with Recipe("get-put") as recipe:
        assert recipe.one_while_held(0)
        assert recipe.list()[0]["last"]["result"] == "done"
        assert "ago" not in recipe.whole(0, EXIT="1", **later(901))  # a quarter of an hour
        assert recipe.list()[0]["last"]["result"] == "failed"


def test_recipe_perl():
    with Recipe("perl") as recipe:
        recipe.one_while_held(0)
        assert recipe.list()[0]["last"]["result"] == "done"
        assert "ago" not in recipe.whole(0, EXIT="1", **later(901))  # a quarter of an hour
        assert recipe.list()[0]["last"]["result"] == "failed"
    with Recipe("perl") as recipe:
        recipe.hold_up()
        killed = recipe.begin()
        wait_for("the program to begin", lambda: recipe.notes())
        killed.kill()
        killed.wait(60)
        wait_for("the lock of a killed script", lambda: recipe.list()[0]["state"] == "free")
        recipe.go_on()


def test_recipe_pass():
    with Recipe("pass") as recipe:
        recipe.hold_up()
        one = recipe.begin()
        wait_for("the first pass to begin", lambda: recipe.notes())
        two = recipe.begin()
        wait_for("the second pass to get on", lambda: len(recipe.notes()) == 2)
        recipe.go_on()
        one.wait(60), two.wait(60)
        begun = sorted(line.split()[-1] for line in recipe.notes() if line.startswith("begin"))
        assert begun == ["one", "three", "two"], recipe.notes()


def test_recipe_report():
    with Recipe("report") as recipe:
        assert "did not run" not in recipe.whole(0, EXIT="75")
        recipe.hold_up()
        holder = recipe.begin()
        wait_for("the first to begin", lambda: len(recipe.notes()) == 3)
        os.rename(recipe.path("outcome.json"), recipe.path("first.json"))
        assert "did not run" in recipe.whole(0)
        recipe.go_on()
        holder.wait(60)


def test_recipe_looking():
    with Recipe("looking") as recipe:
        process, pid = recipe.hold("backup")
        out = recipe.whole(0)
        assert f"held by pid {pid}" in out and "has ended" in out and not runs(pid), out
        assert process.wait(60) == 124


if __name__ == "__main__":
    cases(globals())
