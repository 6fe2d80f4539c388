#!/usr/bin/python3
"""What other schedulers were broken by: each published hole that is about a scheduler, its tokens, messages or logs, as
a test of ours by name (docs/SECURITY.md has the table). Those of starting programs and of files stand elsewhere."""
import os
import random
import re
import signal
import socket
import struct
import subprocess
import time

from authorisation import SMALL, TRIED, protocol
from pool import program, protocol_versions, start_time, wait_for
from speakers import CODES, OTHER, OWNER, Speaker, SpeakersPool, name_of, need_root

OWN = name_of(OWNER)
HOSTILE_NAMES = ["../../etc", "-rf", "a" * 300, "", "root", "0", "uid0", "a/b", ".", "..", "%n%s{}{0}", "x\ny", "\x1b[2J", "a\0b"]


class World:
    def __init__(self, pool):
        self.pool = pool
        self.owner, self.other, self.root = Speaker(pool, OWNER), Speaker(pool, OTHER), Speaker(pool, 0)
        self.token, self.other_token = pool.token_of(self.owner), pool.token_of(self.other)
        assert self.owner.open(token=self.token).kind == "Welcome"
        assert self.owner.ask("OpenSession", number=1, mode=0, sent_reset=0).kind == "OpenReply"
        assert self.owner.ask("Gexec", session=1, grain=1, **SMALL).kind == "Done"
        self.pid = pool.running["scheduler"].pid
        self.started = start_time(self.pid)
        assert self.started

    def alive(self):
        assert start_time(self.pid) == self.started, "the scheduler ended"
        assert self.root.open().kind == "Welcome"
        reply = self.root.ask("Query", type=4, user=OWN, session=1, grain=1, status="", after_user="")
        assert reply.fields["grains[0].state"] == b"ready", reply

    def frame(self, kind, **fields):
        from speakers import quoted
        words = " ".join(f"{key}={quoted(value)}" for key, value in fields.items())
        return bytes.fromhex(self.root.order(f"frame {kind} {words}"))

    def connect(self, uid):
        """As that user: the kernel notes who it is when it connects."""
        groups = os.getgroups()
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(60)
        os.setgroups([self.pool.gid])
        os.setegid(uid)
        os.seteuid(uid)
        try:
            s.connect(os.path.join(self.pool.directory, "user.sock"))
        finally:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(groups)
        return s


def answers(s):
    """All that comes until the scheduler hangs up or is silent for a moment."""
    got = b""
    s.settimeout(0.2)
    try:
        while data := s.recv(65536):
            got += data
    except OSError:
        pass
    s.close()
    return got


def slurm_2018_10995_user_names(w):
    """Names of users that are paths, options, too long, empty, root: no peer gets anywhere with them."""
    assert w.other.open(token=w.other_token).kind == "Welcome"
    for name in HOSTILE_NAMES:
        for kind, fields in (("Gkill", dict(session=1, grain=1)), ("CloseSession", dict(number=1)),
                             ("CleanSession", dict(number=1)), ("Fetch", dict(session=1, grain=1, stream=4, file="")),
                             ("ExportPage", dict(session=1)), ("RestartGrain", dict(session=1, grain=1, and_after=0))):
            heard = w.other.ask(kind, user=name, **fields)
            if heard.kind == "closed" or heard.error() == CODES["PROTOCOL"]:  # too long for a name
                assert len(name) > 64, (kind, name, heard)
                assert w.other.open(token=w.other_token).kind == "Welcome"
                continue
            assert heard.kind == "ErrorReply", f"{kind} of {name!r}: {heard}"
    sessions = os.path.join(w.pool.directory, "state", "sessions")  # there when the turns of the journal are applied
    assert not os.path.exists(sessions) or set(os.listdir(sessions)) <= {OWN}, "a name became a path"
    w.alive()


def slurm_2023_49933_changed_messages(w):
    """One bit of a frame is another one: whichever, nothing is done but by the message that was meant."""
    dice = random.Random(11)
    for kind in ("Gkill", "CloseSession", "SetHost", "GetAuth", "Gexec"):
        whole = w.frame(kind, **({"user": OWN, "session": 1, "grain": 1} if kind == "Gkill" else {}))
        for place in sorted(dice.sample(range(len(whole) * 8), min(64, len(whole) * 8))) + list(range(0, 24 * 8, 3)):
            changed = bytearray(whole)
            changed[place // 8] ^= 1 << (place % 8)
            s = w.connect(OTHER)
            s.sendall(w.frame("Hello", token="") + bytes(changed))
            s.shutdown(socket.SHUT_WR)
            got = answers(s)
            assert got.count(b"DCS1") <= 2, f"{kind}, bit {place}: {got!r}"
    w.alive()


def slurm_2023_49935_replayed_messages(w):
    """What a peer has seen and says again changes nothing: each frame of a session, twice."""
    def session():
        fields = w.root.ask("Query", type=2, user=OWN, session=1, after=-1, status="", after_user="").fields
        return {key: value for key, value in fields.items() if key.startswith("sessions[")}

    assert w.root.open().kind == "Welcome"
    before = session()
    assert before["sessions[0].ready"] == b"1", before
    frames = [w.frame("Hello", token=w.token), w.frame("OpenSession", number=1, mode=1, sent_reset=0),
              w.frame("Gexec", session=1, grain=1, **SMALL)]
    for uid in (OTHER, OWNER):  # by another, with the owner's token in it, and by himself
        for _ in range(2):
            s = w.connect(uid)
            s.sendall(b"".join(frames))
            s.shutdown(socket.SHUT_WR)
            answers(s)
    assert session() == before
    w.alive()


def slurm_2026_65138_lengths_that_lie(w):
    """Frames cut short at every place, and counts in them of more than there is."""
    for kind in ("Gexec", "GexecMany", "PutContent", "Query", "ImportPiece", "AskContents"):
        whole = w.frame(kind)
        for cut in list(range(24, len(whole), max(1, len(whole) // 24))):
            short = bytearray(whole[:cut])
            struct.pack_into("<I", short, 8, cut - 24)
            s = w.connect(OTHER)
            s.sendall(w.frame("Hello", token="") + bytes(short) + b"\xff" * 40)
            answers(s)
        for place in range(24, min(len(whole) - 4, 80)):
            bomb = bytearray(whole)
            struct.pack_into("<I", bomb, place, 0xfffffff0)
            s = w.connect(OTHER)
            s.sendall(w.frame("Hello", token="") + reseal(bomb))
            answers(s)
    rss = int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{w.pid}/status").read()).group(1))
    print(f"    the scheduler holds {rss >> 10} MiB")
    w.alive()


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc_table()


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xff]
    return crc ^ 0xffffffff


def reseal(frame):
    """With the checksum that its payload has now: so the payload is looked at."""
    sealed = bytearray(frame)
    struct.pack_into("<I", sealed, 20, crc32c(bytes(sealed[24:])))
    return bytes(sealed)


def htcondor_2017_16816_valid_users_send_nonsense(w):
    """Well-formed frames with right checksums and random contents, of every kind, by a user who may call."""
    dice = random.Random(16816)
    hello = w.frame("Hello", token=w.other_token)
    for kind in protocol():
        whole = w.frame(kind)
        for _ in range(6):
            changed = bytearray(whole)
            for _ in range(dice.randrange(1, 6)):
                if len(changed) > 24:
                    changed[dice.randrange(24, len(changed))] = dice.choice((0, 1, 0x7f, 0x80, 0xff, dice.randrange(256)))
            s = w.connect(OTHER)
            s.sendall(hello + reseal(changed))
            s.shutdown(socket.SHUT_WR)
            answers(s)
    w.alive()


def condor_2012_3493_queries_tell_no_secrets(w):
    """No answer to any peer has a token in it, of whomever."""
    for speaker, token in ((w.other, w.other_token), (w.root, b"")):
        assert speaker.open(token=token).kind == "Welcome"
        for kind in ("Query", "Query of a grain", "Doctor", "Explain", "ExportPage", "ListTokens"):
            fields = {k: {"S": 1, "U": OWN}.get(str(v), v) for k, v in TRIED[kind]["fields"].items()}
            if kind == "Query":
                fields["type"] = 3
                fields["user"] = OWN
            heard = speaker.ask(kind.split(" ")[0], **fields)
            said = b" ".join(heard.fields.values())
            assert w.token not in said and w.token.hex().encode() not in said, kind


def condor_2012_3492_identity_is_no_path(w):
    """Who a peer is does not depend on his environment, folders, or what he calls himself."""
    place = os.path.join(w.pool.base, "fake")
    os.makedirs(os.path.join(place, "root"), exist_ok=True)
    environment = dict(HOME=place, USER="root", LOGNAME="root", USERNAME="root", DCS_USER="root", PATH="/usr/bin:/bin")
    process = subprocess.Popen([w.pool.speaker], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=place,
                               env=environment, user=OTHER, group=OTHER, extra_groups=[w.pool.gid])
    out, _ = process.communicate(f"unix {w.pool.directory}/user.sock\nsay Hello token=\nhear\n", timeout=120)
    assert f"user={name_of(OTHER)}" in out, out


def condor_2011_4930_formats(w):
    """What looks like a format is only text, in whatever goes into the log."""
    assert w.other.open(token=w.other_token).kind == "Welcome"
    odd = "%n%s%d{}{0}{:>9999999}"

    def told():  # repeatedly: refused commands of one user are a line a second at most
        for kind, fields in (("SetLogLevel", dict(host="", level=odd)), ("RemoveHost", dict(host=odd)),
                             ("Gkill", dict(user=odd, session=1, grain=1)), ("RevokeToken", dict(id=odd))):
            assert w.other.ask(kind, **fields).error() == CODES["REFUSED"], kind
        return odd in w.pool.text("scheduler.log")
    wait_for("the text in the log", told, step=0.5)
    w.alive()


def htcondor_2014_8126_scheduler_runs_nothing(w):
    """There is nothing in the scheduler that could run a program: none of the calls is in its symbols."""
    path = program("dcs_scheduler")
    listing = subprocess.run(["nm", "-D", "--undefined-only", path], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in listing.splitlines() if line.strip()}
    assert "socket" in names or "bind" in names, "nm did not list what was expected"
    bad = {"execve", "execv", "execvp", "execl", "execlp", "execle", "execvpe", "fexecve", "system", "popen",
           "posix_spawn", "posix_spawnp", "dlopen", "wordexp"} & names
    assert not bad, f"{path} can call {bad}"


def htcondor_2019_18823_no_older_way(w):
    """No fallback: another protocol version is nothing, and a certificate is not replaced by saying who one is."""
    oldest, newest = protocol_versions()
    for version in (0, 1, oldest - 1, newest + 1, 65535):
        frame = bytearray(w.frame("Hello", token=""))
        struct.pack_into("<H", frame, 6, version)
        s = w.connect(OTHER)
        s.sendall(bytes(frame))
        got = answers(s)
        assert b"protocol version" in got, (version, got)
    stranger = Speaker(w.pool, stranger=True)
    for kind in ("Hello", "FirstCall", "BeginControl", "GetAuth"):
        assert stranger.open().kind == "opened"
        heard = stranger.ask(kind)
        assert heard.error() == CODES["REFUSED"], f"{kind}: {heard}"


def htcondor_2021_25311_traversal(w):
    """No name in a message is a path of the scheduler's: sessions and grains are numbers, files are named below."""
    assert w.owner.open(token=w.token).kind == "Welcome"
    for name in ("../../../etc/cron.d/x", "/etc/passwd", "a/../../b", "a//b", "..", "a\0b"):
        spec = {**SMALL, "spec.files.size": 1, "spec.files[0].role": 4, "spec.files[0].name": name,
                "spec.files[0].digest": "", "spec.files[0].size": 0, "spec.files[0].binary_class": "",
                "spec.directory": ""}
        heard = w.owner.ask("Gexec", session=1, grain=77, **spec)
        assert heard.error() == 5, (name, heard)  # INVALID
        heard = w.owner.ask("Fetch", user="", session=1, grain=1, stream=5, offset=0, file=name)
        assert heard.kind == "ErrorReply", (name, heard)
    for number in (-1, -2147483648):
        for kind in ("OpenSession", "CloseSession", "CleanSession"):
            assert w.owner.ask(kind, **{"user": ""} if kind != "OpenSession" else {}, number=number).kind == "ErrorReply"
    w.alive()


def openssh_2024_6387_signals(w):
    """A storm of signals while it serves: the handlers do nothing that could break it."""
    assert w.other.open(token=w.other_token).kind == "Welcome"
    for i in range(300):
        for which in (signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
            os.kill(w.pid, which)
        if i % 10 == 0:
            assert w.other.ask("Query", type=0, user="", status="", after_user="").kind == "QueryReply"
        time.sleep(0.001)
    w.alive()


TESTS = (slurm_2018_10995_user_names, slurm_2023_49933_changed_messages, slurm_2023_49935_replayed_messages,
         slurm_2026_65138_lengths_that_lie, htcondor_2017_16816_valid_users_send_nonsense,
         condor_2012_3493_queries_tell_no_secrets, condor_2012_3492_identity_is_no_path, condor_2011_4930_formats,
         htcondor_2014_8126_scheduler_runs_nothing, htcondor_2019_18823_no_older_way, htcondor_2021_25311_traversal,
         openssh_2024_6387_signals)


def main():
    need_root()
    with SpeakersPool() as pool:
        world = World(pool)
        for test in TESTS:
            test(world)
            print(test.__name__.replace("_", " "), flush=True)


if __name__ == "__main__":
    main()
