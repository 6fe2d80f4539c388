#!/usr/bin/python3
"""The audit log: a line for each secure command, done or refused, whatever the log level is; lines that no peer from
outside can break or forge; and no token, code or key in any log."""
import base64
import os
import re

from authorisation import SET_HOST, SMALL
from pool import wait_for
from speakers import MASTER, OTHER, OWNER, Speaker, SpeakersPool, name_of, need_root

LINE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{12}Z dcs_scheduler\[\d+\] (error|warning|info|debug): .")
FORGED = b"\nZ dcs_scheduler[1] info: audit: root asked\x1b[31m{}{0}%n%s\xff"
OWN = name_of(OWNER)


class Audited:
    def __init__(self, pool):
        self.pool = pool
        self.owner, self.other, self.master = (Speaker(pool, uid) for uid in (OWNER, OTHER, MASTER))
        self.tokens = [pool.token_of(speaker) for speaker in (self.owner, self.other, self.master)]
        assert self.owner.open(token=self.tokens[0]).kind == "Welcome"
        for number in range(1, 6):
            self.owner.ask("OpenSession", number=number, mode=0, sent_reset=0)
            assert self.owner.ask("Gexec", session=number, grain=1, **SMALL).kind == "Done"

    def log(self):
        return self.pool.text("scheduler.log")

    def one_line(self, speaker, who, words, kind, **fields):
        """Exactly one more line about it, and it says who, what and the outcome."""
        before = self.log().count("audit: ")
        heard = speaker.ask(kind, **fields)
        line = f"audit: {who} asked to {words}"
        wait_for(f"the line {line!r} after {heard}", lambda: line in self.log())
        assert self.log().count("audit: ") == before + 1, f"{kind}: {self.log()[-800:]}"
        return heard


COMMANDS = [  # what is said of it, the message; of session 1 to 5
    ("kill a grain, {o}/1:1", "Gkill", dict(user=OWN, session=1, grain=1)),
    ("restart a grain, {o}/2:1", "RestartGrain", dict(user=OWN, session=2, grain=1, and_after=0)),
    ("close a session, {o}/3", "CloseSession", dict(user=OWN, number=3, acknowledged=-1)),
    ("remove a session, {o}/3", "CleanSession", dict(user=OWN, number=3)),
    ("look at a grain, {o}/4:1", "Query", dict(type=4, user=OWN, session=4, grain=1, status="", after_user="")),
    ("look at a grain, {o}/4:1", "Explain", dict(user=OWN, session=4, grain=1)),
    ("read what a grain has, {o}/4:1", "Fetch", dict(user=OWN, session=4, grain=1, stream=4, offset=0, file="")),
    ("export a session, {o}/4", "ExportPage", dict(user=OWN, session=4, after=-1, most=1)),
    ("change a host, h2", "SetHost", SET_HOST),
    ("have the settings read again", "Reload", {}),
    ("set what is logged, the scheduler: off", "SetLogLevel", dict(host="", level="off")),
    ("see the codes for hosts to join", "ListTokens", {}),
]


def every_command_leaves_a_line(a):
    for what, kind, fields in COMMANDS:
        words = what.format(o=OWN)
        heard = a.one_line(a.other, name_of(OTHER), words + ": REFUSED, " + name_of(OTHER) + " may not", kind, **fields)
        assert heard.kind == "ErrorReply", heard
    assert a.master.ask("SetLogLevel", host="", level="off").kind == "Done"
    for what, kind, fields in COMMANDS:  # at level `off`
        heard = a.one_line(a.master, name_of(MASTER), what.format(o=OWN) + ": done", kind, **fields)
        assert heard.kind != "ErrorReply", heard
    for kind, fields, words in (("CreateToken", dict(host="h4", ttl_s=60, role=0), f"{name_of(MASTER)} made the code"),
                                ("RemoveHost", dict(host="r0"), f"{name_of(MASTER)} removed host r0 from the pool")):
        heard = a.master.ask(kind, **fields)
        assert heard.kind in ("TokenCreated", "Done"), heard
        if kind == "CreateToken":
            a.tokens.append(heard.fields["token"])
            assert a.master.ask("RevokeToken", id=heard.fields["id"].decode()).kind == "Done"
            wait_for("the revocation", lambda: f"audit: {name_of(MASTER)} revoked the code" in a.log())
        wait_for(words, lambda: "audit: " + words in a.log())
    assert a.owner.ask("Gkill", user="", session=5, grain=1).kind == "Done"  # by the program itself: no secure command
    assert f"kill a grain, {OWN}/5:1" not in a.log()


def nobody_forges_a_line(a):
    assert a.master.ask("SetLogLevel", host="", level="debug").kind == "Done"
    f, stranger = FORGED, Speaker(a.pool, stranger=True)
    for speaker in (a.other, a.master):
        for kind, fields in (("Gkill", dict(user=f, session=1, grain=1)), ("SetHost", {**SET_HOST, "host": f}),
                             ("SetLogLevel", dict(host=f, level=f)), ("RevokeToken", dict(id=f)),
                             ("RemoveHost", dict(host=f)), ("CreateToken", dict(host=f, ttl_s=60)),
                             ("ApproveHost", dict(host=f, words=f)), ("GetAuth", dict(ident=f)),
                             ("Query", dict(type=4, user=f, session=1, grain=1, status=f, after_user=f))):
            assert speaker.ask(kind, **fields).kind == "ErrorReply", kind
    for fields in (dict(host=f, own_name=f, token=""), dict(host="h4", own_name=f, token=b"\n" * 32)):
        stranger.open()
        stranger.ask("JoinHost", request="@request", role=0, **fields)
    h1 = Speaker(a.pool, host="h1")
    h1.open(host=f)
    assert h1.open().kind == "Configure"
    h1.say("CallIn", shut=f, boundary=0)
    key = {"key.user": f, "key.session": 1, "key.grain": 1}
    h1.say("LaunchResult", ok=0, staged=0, text=f, **key)
    h1.say("GrainReport", reason=f, message=f, **{**key, "files.size": 0})
    assert h1.hear().kind in ("ReportAck", "Withdraw")
    wait_for("what h1 said of itself", lambda: "accepts no grains now" in a.log())
    text = open(os.path.join(a.pool.base, "scheduler.log"), "rb").read()
    lines = text.decode("utf-8", errors="strict").splitlines()
    assert any("Z dcs_scheduler[1] info: audit: root asked" in line for line in lines), "nothing of it was logged"
    for line in lines:
        assert LINE.match(line), f"not a line of the log: {line!r}"
        assert not re.search(r"[\x00-\x1f\x7f-\x9f]", line), f"control characters: {line!r}"
        told = line.split(": ", 2)
        assert not (told[1] == "audit" and told[2].startswith("root asked\\x1b")), f"forged: {line!r}"


def no_secret_is_written(a):
    """Of what was handed out here, in any writing, at level debug."""
    secret = b"\x17" * 31 + b"S"  # a token that no peer has, tried
    assert a.other.open(token=secret).kind == "Welcome"
    assert a.other.ask("OpenSession", number=1, mode=1).kind == "ErrorReply"
    keys = [open(os.path.join(a.pool.base, "h1/pki/key.pem")).read().splitlines()[1].encode()]
    files = [os.path.join(a.pool.base, name) for name in os.listdir(a.pool.base) if name.endswith(".log")]
    for folder, _, names in os.walk(os.path.join(a.pool.directory, "state")):
        files += [os.path.join(folder, name) for name in names]
    assert len(files) > 3, files
    for path in files:
        content = open(path, "rb").read()
        for token in [*a.tokens, secret]:
            assert len(token) == 32
            for form in (token, token.hex().encode(), token.hex().upper().encode(), base64.b64encode(token)[:40]):
                assert form not in content, f"{path} holds a token"
        assert not any(key in content for key in keys), f"{path} holds a key"


def main():
    need_root()
    with SpeakersPool() as pool:
        pool.join("h1")
        audited = Audited(pool)
        for part in (every_command_leaves_a_line, nobody_forges_a_line, no_secret_is_written):
            part(audited)
            print(part.__name__.replace("_", " "), flush=True)


if __name__ == "__main__":
    main()
