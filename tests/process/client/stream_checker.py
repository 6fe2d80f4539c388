"""Judges what control programs (stream.c) learned against what the scheduler has at the end.

A history holds, per call, a line before it and a line with its answer. An answer D_E_BROKEN leaves the call in doubt:
it may have happened or not. D_E_UNREACHABLE says that it did not happen. Everything else is a promise."""
import zlib

IN_DOUBT = "D_E_BROKEN"
NOT_SENT = "D_E_UNREACHABLE"


def big_input(text):
    line = text + "\n"
    # snprintf cuts the last line short and ends the input there
    return (line * (40000 // len(line) + 1))[:40000]


def expected_result(ident, session, grain, kind):
    """(code, out, err) that a grain of this kind ends with, None if it never ends."""
    text = f"{ident}.{session}.{grain}"
    line = text + "\n"
    return {"e": (0, line, ""), "s": (0, line, line), "x": (3, line, ""), "b": (0, big_input(text), ""), "f": None}[kind]


def checksum(text):
    return f"{zlib.crc32(text.encode()):08x}"


class Grain:
    def __init__(self, kind):
        self.kind = kind
        self.promised = False   # acknowledged, or seen in a listing: it must be there for ever
        self.possible = False   # some submission may have happened
        self.dead = False       # certainly killed: stays so, no result any more
        self.index = None       # of its result, once that was handed out or listed


class Session:
    def __init__(self):
        self.grains = {}
        self.by_index = {}      # result index -> grain, as handed out
        self.exists = "no"      # no, maybe, yes
        self.closed = "no"
        self.gone = False       # removal acknowledged
        self.removing = False   # a removal may have happened
        self.sent = (0, 0)      # bounds of what the scheduler counts as acknowledged
        self.next = None        # index the next d_gwait asks for, None: what the scheduler said at resumption
        self.unseen = False     # a result may have been handed out whose answer was lost
        self.replaying = False


class Checker:
    """One history: one control program, one call at a time."""

    def __init__(self, path):
        self.path, self.wrong, self.sessions, self.counts = path, [], {}, {}
        self.in_doubt = 0
        calls, answers = {}, {}
        for line in open(path):
            number, kind, rest = line.rstrip("\n").split(" ", 2)
            (calls if kind == "call" else answers)[int(number)] = rest.split()
        self.ident = None
        for number in sorted(calls):
            op, *arguments = calls[number]
            self.number = number
            answer = answers.get(number, [IN_DOUBT])
            self.counts[op] = self.counts.get(op, 0) + 1
            self.in_doubt += answer[0] == IN_DOUBT
            getattr(self, "on_" + op)(arguments, *answer)

    def bad(self, text):
        self.wrong.append(f"{self.path}:{self.number}: {text}")

    def at(self, arguments):
        return self.sessions.setdefault(int(arguments[0]), Session())

    # ---- one method per call ----

    def on_auth(self, arguments, error):
        self.ident = arguments[0]

    def on_open(self, arguments, error):
        s = self.at(arguments)
        if error == "NO_ERROR":
            s.exists, s.closed, s.next = "yes", "no", 0
        elif error == IN_DOUBT:
            s.exists = "maybe"
        elif error != NOT_SENT:
            self.bad(f"session {arguments[0]} was never used, but d_open_ses said {error}")

    def on_resume(self, arguments, error):
        self.enter(self.at(arguments), int(arguments[1]), error, reopen=False)

    def on_reopen(self, arguments, error):
        s = self.at(arguments)
        if error == "D_E_SESSION_ACTIVE" and s.closed == "maybe":
            s.closed = "no"
            return
        self.enter(s, int(arguments[1]), error, reopen=True)

    def enter(self, s, reset, error, reopen):
        if error == IN_DOUBT:
            s.exists = "yes" if s.exists == "yes" else "maybe"
            if reopen:
                s.closed = "maybe"
            if reset and s.closed != "yes":
                s.sent = (0, s.sent[1])
            return
        if error == NOT_SENT:
            return
        if error != "NO_ERROR":
            return self.bad(f"entering said {error}")
        if s.gone:
            self.bad("a removed session was entered")
        s.exists = "yes"
        if reopen:
            s.closed = "no"
        s.replaying = s.closed == "yes"
        if reset:
            s.next = 0
            if not s.replaying:
                s.sent = (0, 0)
        else:
            s.next = None

    def on_close(self, arguments, error):
        s = self.at(arguments)
        if error not in ("NO_ERROR", IN_DOUBT):
            if error != NOT_SENT:
                self.bad(f"closing said {error}")
            return
        if not s.replaying:
            s.closed = "yes" if error == "NO_ERROR" else "maybe"
            self.acknowledge(s, error == "NO_ERROR")
        if error == "NO_ERROR":
            s.replaying = False

    def on_clean(self, arguments, error):
        s = self.at(arguments)
        # The library knows when it repeats a removal; "unknown" is for a program that itself asks a second time.
        if error == "NO_ERROR" or (error == "D_E_SESSION_UNKNOWN" and (s.removing or s.gone)):
            s.gone = True
        elif error == IN_DOUBT:
            s.removing = True
        elif error != NOT_SENT:
            self.bad(f"removing session {arguments[0]} said {error}")

    def on_exec(self, arguments, error):
        s, number = self.at(arguments), int(arguments[1])
        g = s.grains.setdefault(number, Grain(arguments[2]))
        if error == "NO_ERROR" or (error == "D_E_GRAIN_EXISTS" and g.possible):
            g.promised = g.possible = True
        elif error == IN_DOUBT:
            g.possible = True
        elif error == "D_E_GRAIN_EXISTS":
            self.bad(f"grain {number} exists, though no submission of it can have happened")

    def on_kill(self, arguments, error):
        s, number = self.at(arguments), int(arguments[1])
        g = s.grains.get(number)
        if error == "D_E_GRAIN_UNKNOWN":
            if g and g.promised:
                self.bad(f"grain {number} was acknowledged and is unknown at its kill")
        elif error == "NO_ERROR":
            g.promised = True
            # What was handed out stays; whether it was is not known after a lost answer.
            if g.index not in s.by_index and not s.unseen:
                g.dead = True

    def on_list(self, arguments, error, *rows):
        s = self.at(arguments)
        if error != "NO_ERROR":
            return
        shown = {int(r.split(":")[0]): r.split(":")[1:] for r in rows}
        for number, g in s.grains.items():
            if g.promised and number not in shown:
                self.bad(f"acknowledged grain {number} is not listed")
        for number, (state, index) in shown.items():
            g = s.grains.get(number)
            if not g or not g.possible:
                self.bad(f"grain {number} is listed, though no submission of it can have happened")
                continue
            g.promised = True
            if g.dead and state != "killed":
                self.bad(f"grain {number} was killed for certain and is {state}")
            if state == "killed":
                g.dead = True
            if state == "finished":
                self.take_index(s, number, int(index))

    def on_wait(self, arguments, error, *rest):
        s = self.at(arguments)
        if error == IN_DOUBT:
            self.acknowledge(s, False)
            s.unseen = True
            return
        if error == NOT_SENT:
            return
        self.acknowledge(s, True)
        if error == "NO_ERROR":
            if int(rest[0]) > max(s.by_index, default=-1):
                s.unseen = False
            self.take_result(s, *rest)
        else:
            self.skipped(s, 1 << 60)
            s.unseen = False

    # ---- what they mean ----

    def acknowledge(self, s, certain):
        if s.next is None or s.replaying:
            return
        low, high = s.sent
        s.sent = (max(low, s.next) if certain else low, max(high, s.next))

    def skipped(self, s, index):
        """Nothing that was handed out before and comes again may be left out before `index`."""
        first = s.next if s.next is not None else s.sent[1]
        for earlier, number in s.by_index.items():
            if first <= earlier < index:
                self.bad(f"result {earlier} of grain {number} was left out (next {s.next}, came to {index})")

    def take_index(self, s, number, index):
        g = s.grains[number]
        if g.index not in (None, index):
            self.bad(f"grain {number} has result index {index} after {g.index}")
        g.index = index

    def take_result(self, s, index, number, signal, code, out_length, out_crc, err_length, err_crc):
        index, number = int(index), int(number)
        g = s.grains.get(number)
        if not g or not g.possible:
            return self.bad(f"result of grain {number}, which no submission can have made")
        g.promised = True
        if g.dead:
            self.bad(f"result of grain {number}, which was killed for certain")
        if index < (s.next if s.next is not None else s.sent[0]):
            self.bad(f"result {index} came, though it was acknowledged (next {s.next}, sent {s.sent})")
        self.skipped(s, index)
        if s.by_index.setdefault(index, number) != number:
            self.bad(f"result {index} is grain {number}, before it was grain {s.by_index[index]}")
        self.take_index(s, number, index)
        s.next = index + 1
        got = (int(signal), int(code), int(out_length), out_crc, int(err_length), err_crc)
        self.compare(int(self.number_of(s)), number, g, got)

    def number_of(self, s):
        return next(n for n, other in self.sessions.items() if other is s)

    def compare(self, session, number, g, got):
        wanted = expected_result(self.ident, session, number, g.kind)
        if wanted is None:
            return self.bad(f"grain {session}/{number} never ends, but has a result {got}")
        code, out, err = wanted
        if got != (0, code, len(out), checksum(out), len(err), checksum(err)):
            self.bad(f"grain {session}/{number} of kind {g.kind}: its result is {got}")

    # ---- the end ----

    def finish(self, sessions, grains, streams):
        """`sessions`: number -> state; `grains`: (session, grain) -> row; `streams`: the same -> lengths, checksums."""
        self.number = "end"
        for number, s in self.sessions.items():
            state = sessions.pop(number, None)
            if s.gone or s.exists == "no":
                if state:
                    self.bad(f"session {number} exists, though it was removed or never made")
                continue
            if not state:
                if s.exists == "yes" and not s.removing:
                    self.bad(f"session {number} is lost")
                continue
            wanted = {"yes": ("terminated", "closed"), "no": ("active",)}.get(s.closed)
            if wanted and state not in wanted:
                self.bad(f"session {number} is {state}, its last acknowledged call leaves it {wanted[0]}")
            self.finish_session(number, s, grains, streams)

    def finish_session(self, session, s, grains, streams):
        for number, g in s.grains.items():
            row = grains.pop((session, number), None)
            if row and not g.possible:
                self.bad(f"grain {session}/{number} exists, though no submission of it can have happened")
            if not row:
                if g.promised:
                    self.bad(f"acknowledged grain {session}/{number} is lost")
                continue
            if g.dead and row["state"] != "killed":
                self.bad(f"grain {session}/{number} was killed for certain and is {row['state']}")
            if s.by_index.get(g.index) == number and (row["state"], row["result_index"]) != ("finished", g.index):
                self.bad(f"grain {session}/{number} had result {g.index} and is {row['state']} {row['result_index']}")
            if row["state"] == "running":
                self.bad(f"grain {session}/{number} runs in a closed session")
            if row["state"] == "finished":
                # The last run of the control program replayed everything.
                if s.by_index.get(row["result_index"]) != number:
                    self.bad(f"grain {session}/{number} is result {row['result_index']}, but was not handed out as that")
                out_length, out_crc, err_length, err_crc = streams[(session, number)]
                got = (row["signal"] or 0, row["exit_code"], int(out_length), out_crc, int(err_length), err_crc)
                self.compare(session, number, g, got)
