#!/usr/bin/python3
"""A user who fills the scheduler's disk, on a disk of a few hundred MB: he is refused in words while there is room, by the pool's
rules and by what he must leave; another user goes on meanwhile, also after the scheduler was killed; and when he
cleans up he goes on himself."""
import hashlib
import os
import signal
import subprocess
import sys
import tempfile

from authorisation import SMALL
from pool import wait_for
from speakers import CODES, OTHER, OWNER, Speaker, SpeakersPool, name_of, need_root

MB = 1 << 20
DISK, LEFT = 400 * MB, 80 * MB


def inside():
    """In a mount namespace of the test's own, whose folder for temporary files is a small disk. False: it is."""
    if sys.argv[1:] == ["inside"]:
        folder = tempfile.mkdtemp(prefix="dcs-stored-")
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=755", "tmpfs", folder], check=True)
        tempfile.tempdir = folder
        return folder
    os.execv("/usr/bin/unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, os.path.abspath(__file__),
                                  "inside"])


class User:
    def __init__(self, pool, uid):
        self.pool, self.name, self.grain, self.session = pool, name_of(uid), 0, 1
        self.speaker = Speaker(pool, uid)
        self.token = pool.token_of(self.speaker)
        self.connect()

    def connect(self):
        assert self.speaker.open(token=self.token).kind == "Welcome"
        self.open()

    def open(self):
        heard = self.speaker.ask("OpenSession", number=self.session, mode=1, sent_reset=0)
        assert heard.kind == "OpenReply", heard

    def submit(self, size=MB):
        self.grain += 1
        return self.speaker.ask("Gexec", session=self.session, grain=self.grain, **SMALL, **{"spec.input": "x" * size})

    def clean(self):
        assert self.speaker.ask("CloseSession", user="", number=self.session, acknowledged=-1).kind == "Done"
        assert self.speaker.ask("CleanSession", user="", number=self.session).kind == "Done"
        self.session += 1

    def put(self, content):
        digest, piece = hashlib.sha256(content).digest(), 128 * 1024
        for at in range(0, len(content), piece):
            heard = self.speaker.ask("PutContent", digest=digest, total=len(content), offset=at, bytes=content[at:at + piece])
            if heard.kind != "Done":
                return heard
        return heard


def refused(heard, user, *words):
    assert heard.error() == CODES["LIMIT"], heard
    text = heard.fields["text"].decode()
    for word in (f"{user.name} has ", "on the scheduler's disk", "dcs session clean", *words):
        assert word in text, (word, text)
    return text


def by_rule(pool, ann, ben):
    with open(os.path.join(pool.directory, "policy"), "w") as file:
        file.write("stored_mb_per_user 4\n")
    pool.dcs("reload")
    assert ann.put(b"1" * (2 * MB)).kind == "Done"
    assert ann.submit().kind == "Done"
    text = refused(ann.submit(2 * MB), ann, "contents 2.0 MB", "the pool's policy allows 4.0 MB")
    print("   ", text, flush=True)
    refused(ann.put(b"2" * (2 * MB)), ann, "the pool's policy allows")
    assert ben.put(b"2" * (2 * MB)).kind == "Done"
    assert ben.submit().kind == "Done"
    os.unlink(os.path.join(pool.directory, "policy"))
    pool.dcs("reload")


def room(folder):
    st = os.statvfs(folder)
    return st.f_bavail * st.f_frsize


def by_what_is_left(pool, ann, ben, folder):
    with open(os.path.join(folder, "ballast"), "wb") as file:  # another peer's
        os.posix_fallocate(file.fileno(), 0, room(folder) - LEFT)
    taken = 0
    while (heard := ann.submit()).kind == "Done":
        taken += 1
        assert taken < LEFT // MB, "she may take all of it"
    text = refused(heard, ann, "50 % of this user's data and the free space together")
    print(f"    after {taken} MB, with {room(folder) / MB:.0f} left: {text}", flush=True)
    assert taken > LEFT // MB // 4 and room(folder) > LEFT // 4, (taken, room(folder))
    for _ in range(5):
        assert (heard := ben.submit()).kind == "Done", heard
    refused(ann.submit(), ann)


def after_a_kill(pool, ann, ben):
    pool.stop("scheduler", signal.SIGKILL)
    pool.start_scheduler()
    ann.connect()
    ben.connect()
    refused(ann.submit(), ann)
    assert (heard := ben.submit()).kind == "Done", heard


def cleaning_makes_room(ann):
    ann.clean()
    wait_for("a session of hers", lambda: ann.speaker.ask("OpenSession", number=ann.session, mode=1, sent_reset=0).kind == "OpenReply")
    for _ in range(5):
        wait_for("room", lambda: ann.submit().kind == "Done")


def main():
    need_root()
    folder = inside()
    try:
        with SpeakersPool() as pool:
            ann, ben = User(pool, OWNER), User(pool, OTHER)
            by_rule(pool, ann, ben)
            by_what_is_left(pool, ann, ben, folder)
            after_a_kill(pool, ann, ben)
            cleaning_makes_room(ann)
            print("the one is refused, the other goes on")
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        os.rmdir(folder)


if __name__ == "__main__":
    main()
