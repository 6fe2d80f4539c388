#!/usr/bin/python3
"""Each call of dcs.h and dcs_query.h: that it succeeds, every error that its "Errors:" names, and those that every call can end with. What
the header names and what api_errors.cc provokes must be the same, in both directions."""
import os
import re
import shutil
import socket
import subprocess
import threading

from hurry import Hurry
from pool import BIN, ROOT as TREE, Pool, wait_for
from restartable import library
from speakers import OTHER, SpeakersPool

TOOL = os.path.join(os.path.dirname(BIN), "tests", "api_errors")
HEADERS = [os.path.join(TREE, "libdcs/include", name) for name in ("dcs.h", "dcs_query.h")]
COMMON = {"D_E_UNREACHABLE", "D_E_BROKEN", "D_E_PROTOCOL"}
WITHOUT_AUTH = re.compile(r"[Nn]eeds? no\s+d_get_auth")
# Another user is needed for these, or rules of the pool.
AS_ANOTHER = {"d_close_ses_of", "d_gkill_of", "d_explain", "d_sethost", "d_clear_nogo"}
ASK_NOBODY = {"d_version", "d_errornumber", "d_set_patience", "d_set_new_demands", "d_resume_failed"}
LIMITED = {"d_open_ses", "d_resume_ses", "d_reopen_ses"}
ECONNREFUSED, ECONNRESET = 111, 104


def documented():
    """Call -> errors that its comment names; and the calls that need d_get_auth. A call and its form for a pool are one."""
    text = "".join(open(header).read() for header in HEADERS)
    errors, need_auth = {}, set()
    comments = [(m.end(), re.sub(r"\n \* ?", " ", m.group(1))) for m in re.finditer(r"/\*(.*?)\*/", text, re.S)
                if "Errors" in m.group(1)]
    for call in re.finditer(r"^(?:static inline )?int (d_(?:pool_)?\w+?)(?:_sized)?\(", text, re.M):
        name = call.group(1).replace("d_pool_", "d_")
        if name in ASK_NOBODY:
            continue
        comment = [c for end, c in comments if end < call.start()][-1]
        found = re.search(r"Errors(?: of (d_\w+))?: (.*)", comment)
        assert found and found.group(1) in (None, name), f"the header does not name the errors of {name}"
        named = set(re.findall(r"D_E_\w+", found.group(2)))
        for other in re.findall(r"(?<!\()as (d_\w+)", found.group(2)):
            named |= errors[other]
        errors[name] = named - set(re.findall(r"but for (D_E_\w+)", found.group(2)))
        if not WITHOUT_AUTH.search(comment) and name not in ("d_get_auth", "d_sethost", "d_query"):
            need_auth.add(name)
    return errors, need_auth


class Tool:
    """Runs api_errors with session numbers that no other party has."""

    def __init__(self, env, path=TOOL, **options):
        self.env, self.path, self.options, self.session = dict(env, LD_LIBRARY_PATH=library()), path, options, 0

    def start(self, *words, **more):
        self.session += 10
        return subprocess.Popen([self.path, *words, str(self.session)], env=dict(self.env, **more), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True, **self.options)

    def run(self, *words, **more):
        out, _ = self.start(*words, **more).communicate("\n", timeout=120)
        return Answer(out, words)


class Answer:
    def __init__(self, out, words):
        self.words, self.out = " ".join(words), out
        found = re.search(r"^(NO_ERROR|D_E_\w+) (\d+) (.*)", out, re.M | re.S)
        self.name, number, self.text = found.groups() if found else (None, "-1", "")
        self.errno = int(number)

    def must_be(self, *names):
        assert self.name in names, f"{self.words}: expected {names}, got {self.out!r}"
        assert self.name == "NO_ERROR" or len(self.text) > 15, f"{self.words}: says only {self.out!r}"
        return self


class Between:
    """A proxy before the scheduler's socket that passes everything on until it gets a mode: `away` nothing
    answers, `broken` a caller loses the connection, `nonsense` a caller gets what no scheduler sends."""

    def __init__(self, directory, scheduler):
        self.scheduler, self.what = scheduler, "pass"
        os.makedirs(os.path.join(directory, "scheduler"))
        self.path = os.path.join(directory, "scheduler", "user.sock")
        self.lock, self.open = threading.Lock(), []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                caller, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.scheduler)
            with self.lock:
                self.open += [caller, server]
            for a, b in ((caller, server), (server, caller)):
                threading.Thread(target=self.carry, args=(a, b, a is caller), daemon=True).start()

    def carry(self, source, target, from_caller):
        greetings = 1 if self.what == "broken" else 0  # what is new then may still say Hello, so that a request leaves
        try:
            while data := source.recv(65536):
                if self.what == "broken" and from_caller:
                    greetings -= 1
                    if greetings < 0:
                        break
                if self.what == "nonsense":
                    if from_caller:
                        source.sendall(b"\x7f" * 64)
                    continue
                target.sendall(data)
        except OSError:
            pass
        end(source)
        end(target)

    def turn(self, what):
        self.what = what
        if what == "away":
            self.close()

    def close(self):
        end(self.listener)  # which also wakes the thread that accepts
        with self.lock:
            for s in self.open:
                end(s)


def end(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def cases(tool):
    out = subprocess.run([TOOL, "list"], env=tool.env, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [tuple(line.split()) for line in out.splitlines()]


def header_and_cases_agree(errors, listed):
    tried = {}
    for call, error in listed:
        tried.setdefault(call, set()).add(error)
    assert set(tried) == set(errors), set(tried) ^ set(errors)
    for call, named in errors.items():
        assert tried[call] == named | {"NO_ERROR"}, f"{call}: header and cases differ in {tried[call] ^ (named | {'NO_ERROR'})}"


def own_errors(pool, tool, listed):
    later = [(c, e) for c, e in listed if c in LIMITED and e == "D_E_LIMIT"]
    elsewhere = [(c, e) for c, e in listed if c in AS_ANOTHER and e == "D_E_REFUSED"]
    for call, error in listed:
        if (call, error) not in later + elsewhere:
            tool.run("case", call, error).must_be(error)
    for row in pool.json("session", "ls")["sessions"]:
        if row["state"] == "active":
            pool.dcs("session", "close", str(row["session"]))
    with open(os.path.join(pool.dir, "scheduler/policy"), "w") as file:
        file.write("sessions_per_user 1\n")
    pool.dcs("reload")
    for call, error in later:
        tool.run("case", call, error).must_be(error)
        pool.dcs("session", "close", "all", check=False)
    os.remove(os.path.join(pool.dir, "scheduler/policy"))
    pool.dcs("reload")
    return len(listed) - len(elsewhere)


def common_errors(pool, tool, errors, need_auth):
    """Of each call, in the middle of a program that worked until then."""
    for call in errors:
        none = tool.run("without", call)
        if call in need_auth:
            none.must_be("D_E_NO_AUTH")
        else:
            assert none.name != "D_E_NO_AUTH", none.out
        tool.run("plain", call).must_be("NO_ERROR")
        for what, name, number in (("away", "D_E_UNREACHABLE", ECONNREFUSED), ("broken", "D_E_BROKEN", ECONNRESET),
                                   ("nonsense", "D_E_PROTOCOL", None)):
            directory = os.path.join(pool.base, f"between-{call}-{what}")
            between = Between(directory, os.path.join(pool.dir, "scheduler/user.sock"))
            process = tool.start("plain", call, DCS_DIR=directory, DCS_PATIENCE_S="0")
            line = process.stdout.readline()
            assert line == "ready\n", f"{call}: {line}"
            between.turn(what)
            out, _ = process.communicate("\n", timeout=120)
            between.close()
            answer = Answer(out, (what, call)).must_be(name)
            assert number in (None, answer.errno), f"{call}: errno {answer.errno} with {name}"


def refused(listed):
    """By a party who may use the pool, and asks for what is another's."""
    if os.geteuid() != 0:
        print("LEFT OUT: D_E_REFUSED, only root can be several users")
        return 0
    with SpeakersPool() as pool:
        tools = os.path.join(pool.base, "tools")
        os.mkdir(tools)
        os.chmod(tools, 0o711)
        path = shutil.copy(TOOL, tools)
        for name in os.listdir(library()):
            if name.startswith("libdcs.so"):
                shutil.copy(os.path.join(library(), name), tools)
        os.chmod(path, 0o755)
        tool = Tool(dict(os.environ, DCS_DIR=pool.base), path, user=OTHER, group=OTHER, extra_groups=[pool.gid], cwd="/")
        tool.env["LD_LIBRARY_PATH"] = tools
        mine = [(c, e) for c, e in listed if c in AS_ANOTHER and e == "D_E_REFUSED"]
        for call, error in mine:
            tool.run("case", call, error).must_be(error)
        return len(mine)


def main():
    errors, need_auth = documented()
    with Pool(1, 8, 0.5) as pool, Hurry(pool):
        tool = Tool(dict(pool.env, USER="root" if os.geteuid() == 0 else os.environ["USER"]))
        listed = cases(tool)
        header_and_cases_agree(errors, listed)
        wait_for("the host", lambda: pool.json("host", "ls")["hosts"][0]["state"] == "active")
        tried = own_errors(pool, tool, listed)
        common_errors(pool, tool, errors, need_auth)
    tried += refused(listed)
    print(f"1 passed, 0 failed; {tried} cases of {len(errors)} calls, and {len(COMMON) + 1} errors of each")


if __name__ == "__main__":
    main()
