"""While dcs_begin waits for a scheduler the host's key is in a process of the user, who must not get at it; and no signal
that he may send makes it leave a core or do anything but go on or end."""
import ctypes
import os
import shutil
import signal
import socket
import time

from begin_world import LIBC, USERS
from pool import wait_for

ATTACH, SEIZE, PIDFD_OPEN, PIDFD_GETFD, VM_READV = 16, 0x4206, 434, 438, 310


def as_user(uid, work):
    """What `work` returns in a process of the user."""
    ends = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        try:
            answer = work()
        except OSError as error:
            answer = f"failed: {error}"
        os.write(ends[1], str(answer).encode())
        os._exit(0)
    os.close(ends[1])
    with open(ends[0], "rb") as told:
        answer = told.read().decode()
    os.waitpid(pid, 0)
    return answer


def pry(pid):
    """The ways into another process of one's own that are open, by name."""
    open_ways = []
    for name in ("mem", "environ", "maps", "auxv", "stack", "syscall"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                file.read(1)
            open_ways.append(name)
        except OSError as error:
            if name == "mem" and error.errno == 5:
                open_ways.append(name)
    for name in ("fd", "map_files", "cwd", "exe"):
        try:
            os.listdir(f"/proc/{pid}/{name}") if name in ("fd", "map_files") else os.readlink(f"/proc/{pid}/{name}")
            open_ways.append(name)
        except OSError:
            pass
    for name, request in (("attach", ATTACH), ("seize", SEIZE)):
        if LIBC.ptrace(request, pid, 0, 0) == 0:
            open_ways.append(name)
    pidfd = LIBC.syscall(PIDFD_OPEN, pid, 0)
    if LIBC.syscall(PIDFD_GETFD, pidfd, 3, 0) >= 0:
        open_ways.append("pidfd_getfd")
    buffer = ctypes.create_string_buffer(8)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    remote = (ctypes.c_void_p * 2)(0x400000, 8)
    LIBC.process_vm_readv.restype = ctypes.c_ssize_t
    if LIBC.process_vm_readv(pid, local, 1, remote, 1, 0) >= 0 or ctypes.get_errno() == 14:
        open_ways.append("process_vm_readv")
    return " ".join(open_ways)


def waiting(world, **how):
    before = world.heard().count("asked")
    child = world.start(env={"DCS_PATIENCE_S": "30"}, **how)
    wait_for("dcs_begin to ask", lambda: world.heard().count("asked") > before)
    return child


def run_waiting(world):
    world.peer("silent")
    bad = []
    child = waiting(world)
    ways = as_user(USERS["ann"], lambda: pry(child[0]))
    if ways:
        bad.append(f"waiting: its user can get at the host's key: {ways}")
    as_user(USERS["ann"], lambda: os.kill(child[0], signal.SIGCONT))  # in case it was attached to
    said = as_user(USERS["ann"], lambda: os.kill(child[0], signal.SIGSEGV))
    if said != "None":
        bad.append(f"waiting: no signal could be sent: {said}")
    outcome = world.finish(child)
    if outcome.signal != signal.SIGSEGV or outcome.core or outcome.started:
        bad.append(f"waiting: after a signal: {outcome}")
    return bad + private_pool(world) + flood(world)


def private_pool(world):
    """A token in the memory of a dcs_begin without any privilege is worth something, too."""
    place = world.base + "/home-61001/stalls"
    os.makedirs(place + "/scheduler", exist_ok=True)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(place + "/scheduler/user.sock")
        door.listen()
        os.chmod(place + "/scheduler/user.sock", 0o777)
        plain = shutil.copy(world.program, world.base + "/home-61001/plain")
        os.chmod(plain, 0o755)
        child = world.start(program=plain, env={"DCS_DIR": place})
        with door.accept()[0] as peer:
            hello = peer.recv(100)
            ways = as_user(USERS["ann"], lambda: pry(child[0]))
        os.kill(child[0], signal.SIGKILL)
        world.finish(child)
    shutil.rmtree(place)
    return [] if hello[:4] == b"DCS1" and not ways else [f"waiting in a private pool: {hello}, open to its user: {ways}"]


def flood(world):
    """Stopped, continued and signalled every millisecond, it gets there all the same."""
    world.peer()
    bad = []
    for _ in range(3):
        child = world.start()
        flooding = os.fork()
        if flooding == 0:
            os.setresuid(USERS["ann"], USERS["ann"], USERS["ann"])
            try:
                while True:
                    for number in (signal.SIGSTOP, signal.SIGWINCH, signal.SIGCHLD, signal.SIGURG, signal.SIGCONT):
                        os.kill(child[0], number)
                    time.sleep(0.001)
            except OSError:
                time.sleep(1000)
        try:
            wrong = world.judge(world.finish(child), None)
        finally:
            os.kill(flooding, signal.SIGKILL)
            os.waitpid(flooding, 0)
        bad += [f"signals every millisecond: {wrong}"] if wrong else []
    return bad
