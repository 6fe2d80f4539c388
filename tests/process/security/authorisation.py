#!/usr/bin/python3
"""Every message of the protocol, said by each peer who could say it, over the real sockets: what comes of it must be
what docs/AUTHORISATION.md says, and nothing else may have changed. The messages are taken from the protocol's own list,
so one without a row there, or without a way to be tried here, fails."""
import hashlib
import os
import re

from pool import ROOT as TREE
from speakers import CODES, MASTER, OTHER, OUTSIDER, OWNER, ROOT, Speaker, SpeakersPool, name_of, need_root

COLUMNS = ("owner", "other", "outsider", "master", "root", "server", "other server", "removed", "stranger")
USERS = {"owner": OWNER, "other": OTHER, "outsider": OUTSIDER, "master": MASTER, "root": ROOT}
NOWHERE = 0x80000000  # a class without hosts
CONTENT = b"what a grain finds in its directory"
DIGEST = hashlib.sha256(CONTENT).digest()
SMALL = {"spec.files.size": 0, "spec.demands.host_class": NOWHERE}
FILED = {"spec.files.size": 2, "spec.demands.host_class": 1, "spec.directory": "", "spec.demands.cores": 1, "spec.demands.memory_mb": 0,
         "spec.demands.thrash": 0,
         "spec.files[0].role": 0, "spec.files[0].name": "data", "spec.files[0].digest": DIGEST,
         "spec.files[0].binary_class": "",
         "spec.files[0].size": len(CONTENT), "spec.files[1].role": 4, "spec.files[1].name": "out",
         "spec.files[1].digest": "", "spec.files[1].size": 0, "spec.files[1].binary_class": ""}
SET_HOST = {"host": "h2", "slots": -1, "interval_s": -1, "alert_s": -1, "limit_s": -1, "extended_s": -1, "host_class": 0,
            "drained": 0, "reset": 0, "clear_nogo": 0, "user": "", "session": -1, "grain": -1, "drain_reason": ""}


def of(reply, *codes, closed=False, **fields):
    """How a user's message is tried. What the reply is when it is done, and which errors say that it was only about
    something that is not there; S stands for the session of the owner, U for his name."""
    return {"reply": reply, "codes": {CODES[c] for c in codes}, "closed": closed, "fields": fields}


TRIED = {
    "Hello": of("Welcome", token=""),
    "GetAuth": of("AuthReply", ident="again"),
    "OpenSession": of("OpenReply", number="S", mode=1, sent_reset=0),
    "CloseSession": of("Done", user="", number="S", acknowledged=-1),
    "CloseSession by name": of("Done", user="U", number="S", acknowledged=-1),
    "CleanSession": of("Done", user="", number="S", closed=True),
    "CleanSession by name": of("Done", user="U", number="S", closed=True),
    "Gexec": of("Done", session="S", grain=2, **SMALL),
    "GexecMany": of("Done", session="S", **{"orders.size": 1, "orders[0].grain": 3,
                                            **{"orders[0]." + key: value for key, value in SMALL.items()}}),
    "Gkill": of("Done", user="", session="S", grain=1),
    "Gkill by name": of("Done", user="U", session="S", grain=1),
    "Gwait": of("GrainResult", "NOTHING_YET", "CANNOT_RUN", session="S", next=0, block=0),
    "GwaitMany": of("GrainResults", "NOTHING_YET", "CANNOT_RUN", session="S", next=0, most=1, block=0),
    "Fetch": of("Piece", user="U", session="S", grain=1, stream=4, offset=0, file=""),
    "Query": of("QueryReply", type=2, user="", session=-1, grain=-1, after=-1, status="", after_user=""),
    "Query of a grain": of("QueryReply", type=4, user="U", session="S", grain=1, after=-1, status="", after_user=""),
    "ExportPage": of("ExportReply", user="U", session="S", after=-1, most=1),
    "ImportPiece": of("Done", offset=0, total=5, bytes="bytes"),
    "ImportSession": of("Done", "NOT_FOUND", number=1000000, replace=0),
    "Doctor": of("DoctorReply"),
    "Explain": of("Explanation", user="U", session="S", grain=1),
    "SetHost": of("Done", **SET_HOST),
    "RestartGrain": of("Done", user="U", session="S", grain=1, and_after=0, forgets=0),
    "Reload": of("Done"),
    "SetLogLevel": of("Done", host="", level="debug"),
    "AskContents": of("MissingContents", **{"digests.size": 1}),
    "PutContent": of("Done", digest=DIGEST, total=len(CONTENT), offset=0, bytes=CONTENT),
    "CreateToken": of("TokenCreated", host="h4", ttl_s=60, role=0),
    "ListTokens": of("TokenList"),
    "RevokeToken": of("Done", "NOT_FOUND", id="0a1b"),
    "ApproveHost": of("Done", "NOT_FOUND", host="h4", words="nobody"),
    "RemoveHost": of("Done", host="r-of-actor"),
    "SetSession": of("Done", user="U", number="S", nice=1, set_label=0, label=""),
}


def protocol():
    """Names of all messages, from the list that the programs are built from."""
    text = open(os.path.join(TREE, "libdcs/wire/message.cc")).read()
    names = re.findall(r'"(\w+)"', re.search(r"names = \{(.*?)\};", text, re.S).group(1))
    header = open(os.path.join(TREE, "libdcs/wire/message.h")).read()
    variant = re.findall(r"\w+", re.search(r"AnyMessageOf =\s*std::variant<(.*?)>;", header, re.S).group(1))
    assert names == variant and len(names) > 60, (names, variant)
    return names


def page():
    """Row name -> {column: word} of the table in docs/AUTHORISATION.md, and of its list of messages that only the scheduler sends."""
    rows = {}
    text = open(os.path.join(TREE, "docs/AUTHORISATION.md")).read()
    sent = text.split("\n## 3. ", 1)[1].split("\n## ", 1)[0]
    for name in re.findall(r"`([A-Z]\w+)`", sent):
        rows[name] = {column: "closed" if column == "outsider" else "ends" for column in COLUMNS}
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) == len(COLUMNS) + 1:
            name = cells[0].replace("`", "")
            assert name not in rows, f"{name} occurs twice"
            rows[name] = dict(zip(COLUMNS, cells[1:]))
    return rows


class Matrix:
    def __init__(self, pool):
        self.pool, self.session = pool, 0
        self.users = {column: Speaker(pool, uid) for column, uid in USERS.items()}
        self.watcher, self.setter = Speaker(pool, 0), Speaker(pool, OWNER)
        self.tokens = {column: pool.token_of(self.users[column]) for column in USERS if column != "outsider"}
        self.hosts = {"server": Speaker(pool, host="h1"), "other server": Speaker(pool, host="h2"),
                      "removed": Speaker(pool, host="h3")}
        self.stranger = Speaker(pool, stranger=True)
        assert self.watcher.open().kind == "Welcome"
        assert self.setter.open(token=self.tokens["owner"]).kind == "Welcome"
        put = self.setter.ask("PutContent", digest=DIGEST, total=len(CONTENT), offset=0, bytes=CONTENT)
        assert put.kind == "Done", put

    def new_session(self, spec, closed=False):
        self.session += 1
        opened = self.setter.ask("OpenSession", number=self.session, mode=0, sent_reset=0)
        assert opened.kind == "OpenReply", opened
        done = self.setter.ask("Gexec", session=self.session, grain=1, **spec)
        assert done.kind == "Done", done
        if closed:
            assert self.setter.ask("CloseSession", user="", number=self.session, acknowledged=-1).kind == "Done"

    def snapshot(self):
        """What there is of the owner's present session, as root sees it."""
        reply = self.watcher.ask("Query", type=4, user=name_of(OWNER), session=self.session, grain=1, after=-1,
                                 status="", after_user="")
        keep = ("state", "host", "incarnation", "restarts", "out_length", "exit_code")
        row = {key: reply.fields.get(f"grains[0].{key}") for key in keep}
        reply = self.watcher.ask("Query", type=2, user=name_of(OWNER), session=self.session, grain=-1, after=-1,
                                 status="", after_user="")
        return row, reply.fields.get("sessions[0].state"), reply.fields.get("sessions[0].ready")

    # ---- said by users -------------------------------------------------------------------

    def by_user(self, row, column):
        """The outcome, as the page's word, and what was heard."""
        kind, speaker = row.split(" ")[0], self.users[column]
        tried = TRIED.get(row, of(None))
        named = "S" in map(str, tried["fields"].values())
        if named:
            self.new_session(SMALL, tried["closed"])
        before = self.snapshot() if named else None
        opened = speaker.open(token=self.tokens.get(column, b""), greet=kind != "Hello")
        if opened.kind == "closed":
            return ("closed" if "Permission denied" in opened.text else "?"), opened
        fields = {key: {"S": self.session, "U": name_of(OWNER), "r-of-actor": f"r{USERS[column]}"}.get(str(value), value)
                  for key, value in tried["fields"].items()}
        heard = speaker.ask(kind, **fields)
        word = self.word_for_user(tried, speaker, heard, column)
        if named and word in ("no", "own", "ends"):
            assert self.snapshot() == before, f"{row}, said by {column}, changed something: {before} {self.snapshot()}"
        return word, heard

    def word_for_user(self, tried, speaker, heard, column):
        if heard.error() == CODES["PROTOCOL"]:
            return "ends" if speaker.hear().kind == "closed" else "?"
        alive = speaker.ask("Query", type=0, user="", status="", after_user="").kind == "QueryReply"
        if not alive:
            return "?"
        if heard.kind == tried["reply"] == "OpenReply" and column != "owner":
            return "own" if heard.number("as") == 0 else "yes"
        if heard.kind == tried["reply"] or heard.error() in tried["codes"]:
            return "yes"
        return {CODES["REFUSED"]: "no", CODES["SESSION_UNKNOWN"]: "own"}.get(heard.error(), "?")

    # ---- said by hosts -------------------------------------------------------------------

    def by_server(self, row, column):
        """A grain of the owner is leased to h1; `server` is h1 itself."""
        kind, speaker, h1 = row.split(" ")[0], self.hosts[column], self.hosts["server"]
        fields = {"user": name_of(OWNER), "session": None, "grain": 1}
        leased = kind in ("CallIn", "GrainReport", "LaunchResult", "WantContent", "PutContent", "RenewCertificate")
        if leased:
            assert h1.open().kind == "Configure"
            self.new_session(FILED)
            launch = h1.hear()
            assert launch.kind == "Launch" and launch.number("key.session") == self.session, launch
            fields["session"] = self.session
            before = self.snapshot()
        if column == "removed" or kind == "FirstCall":
            speaker.open(greet=False)
        elif column != "server" or not leased:
            assert speaker.open().kind == "Configure"
        incarnation = launch.number("incarnation") if leased else 1
        word, heard = self.say_as_server(kind, speaker, fields, incarnation, column)
        if leased:
            if word != "yes" or column != "server":
                assert self.snapshot() == before, f"{row}, said by {column}, changed something"
            done = self.setter.ask("CloseSession", user="", number=self.session, acknowledged=-1)
            assert done.kind == "Done", done
            speaker.open(greet=False)
        return word, heard

    def say_as_server(self, kind, speaker, fields, incarnation, column):
        key = {f"key.{name}": value for name, value in fields.items()}
        report = {"incarnation": incarnation, "first_seq": 1, "last_seq": 1, "has_checkpoint": 0, "ended": 1,
                  "exit_code": 0, "signal": 0, "innocent": 0, "reason": "", "limit": 0, "given_back": 0,
                  "files.size": 0, "out": "forged", "err": "", "checkpoint": "", "message": "", **key}
        said = {"GrainReport": report, "LaunchResult": {"incarnation": incarnation, "ok": 1, "staged": 0, **key},
                "WantContent": {"digest": DIGEST, "offset": 0},
                "PutContent": {"digest": DIGEST, "total": len(CONTENT), "offset": 0, "bytes": CONTENT},
                "RenewCertificate": {"request": "@request"}, "FirstCall": {"host": "h1", "held.size": 0},
                "CallIn": {"boundary": 0, "shut": ""}, "Peeked": {"ticket": 77, "total": 5, "bytes": "bytes"}}.get(kind, {})
        speaker.say(kind, **said)
        if kind in ("CallIn", "LaunchResult", "Peeked"):
            heard = self.after_next_answers(speaker)
        else:
            heard = speaker.hear()
        if heard.kind in ("closed", "Refused"):
            return "ends", heard
        if heard.kind == "ContentTaken" or heard.kind == "ContentPiece" and kind == "WantContent":
            return ("yes" if heard.number("code") == 0 else "no"), heard
        if heard.kind == "ReportAck":
            return {0: "yes", 2: "no"}.get(heard.number("verdict"), "?"), heard
        done = {"FirstCall": "Configure", "CallIn": "ContentPiece", "LaunchResult": "ContentPiece",
                "RenewCertificate": "Renewed", "Peeked": "ContentPiece"}
        if kind == "LaunchResult" and heard.kind == "Withdraw":
            return "no", heard
        return ("yes" if heard.kind == done.get(kind) else "?"), heard

    @staticmethod
    def after_next_answers(speaker):
        """These have no answer of their own: two questions that have, one after the other, and what arrived beside."""
        for _ in range(2):
            speaker.say("WantContent", digest=b"\0" * 32, offset=0)
            heard = speaker.hear()
            if heard.kind != "ContentPiece":
                return heard
        return heard

    def by_stranger(self, row):
        opened = self.stranger.open()
        assert opened.kind == "opened", opened
        fields = {}
        if row == "JoinHost":
            made = self.watcher.ask("CreateToken", host="h4", ttl_s=60, role=0)
            fields = {"host": "h4", "token": made.fields["token"], "request": "@request", "role": 0}
        heard = self.stranger.ask(row.split(" ")[0], **fields)
        if heard.kind == "Joined":
            return "yes", heard
        closed = heard.kind == "closed" or (heard.error() is not None and self.stranger.hear().kind == "closed")
        return ("ends" if closed else "?"), heard

    def cell(self, row, column):
        if column in USERS:
            return self.by_user(row, column)
        return self.by_stranger(row) if column == "stranger" else self.by_server(row, column)


def tokens_are_bound(pool, matrix):
    """A token that another peer has is worth nothing to him, whatever he says with it."""
    for column in ("other", "master", "root"):
        speaker = matrix.users[column]
        assert speaker.open(token=matrix.tokens["owner"]).kind == "Welcome"
        matrix.new_session(SMALL)
        for kind in ("OpenSession", "Gexec", "GexecMany", "Gkill", "Gwait", "GwaitMany", "CloseSession", "CleanSession"):
            fields = {key: matrix.session if value == "S" else value for key, value in TRIED[kind]["fields"].items()}
            heard = speaker.ask(kind, **fields)
            assert heard.error() == CODES["NO_AUTH"], f"{kind} of {column} with the owner's token: {heard}"


def nobody_else_comes_in(pool):
    """Beside the group's socket there is nothing in the directory for other users."""
    other = Speaker(pool, OTHER)
    for name in ("server.sock",):
        heard = other.order(f"unix {pool.directory}/{name}")
        assert "Permission denied" in heard, heard
    for name in ("state", "pki", "lock", "hosts", "suspect"):
        path = os.path.join(pool.directory, name)
        assert os.stat(path).st_mode & 0o007 == 0 or name == "hosts", f"{path} is open to others"


def main():
    need_root()
    names, rows = protocol(), page()
    said = {row.split(" ")[0] for row in rows}
    assert said == set(names), f"docs/AUTHORISATION.md and the protocol differ: {said ^ set(names)}"
    with SpeakersPool() as pool:
        for host in ("h1", "h2", "h3"):
            pool.join(host)
        pool.dcs("host", "rm", "h3")
        matrix, wrong = Matrix(pool), []
        for row, cells in rows.items():
            for column in COLUMNS:
                try:
                    word, heard = matrix.cell(row, column)
                except AssertionError as error:  # a kind that came after the opening form, from one that was not greeted
                    assert f"which does not know {row}:" in str(error), error
                    continue
                if word != cells[column]:
                    wrong.append(f"{row}, {column}: the page says `{cells[column]}`, it is `{word}`: {heard!r:.200}")
                    print(wrong[-1], flush=True)
        print(f"{len(rows)} rows, {len(rows) * len(COLUMNS)} cells, {len(wrong)} differ")
        assert not wrong
        tokens_are_bound(pool, matrix)
        nobody_else_comes_in(pool)
        print("tokens are bound; no other sender is accepted")


if __name__ == "__main__":
    main()
