#!/usr/bin/python3
"""The event log of a session: it has everything once and in order, through kills of the scheduler, an export and an import;
its pictures have every grain and every edge; and what `dcs grain restart --and-after` forgets is gone from both."""
import json
import os
import re
import subprocess

from pool import Pool, program, wait_for

DECIDE = os.path.join(os.path.dirname(program("dcs")), "../tests/decide")


def log(pool, session):
    document = json.loads(pool.dcs("session", "log", str(session), "-o", "json").stdout)
    assert document["schema"] == "dcs.session.log/1" and document["session"] == session, document
    return document["events"]


def kinds(events):
    return [e["event"] for e in events]


def run(pool, *words):
    result = subprocess.run([DECIDE, *map(str, words)], env=pool.env, capture_output=True, timeout=300)
    return result.returncode, result.stdout.decode()


def check(pool, session):
    """Who waits for results and decides by them: what each grain could know is what it was made of."""
    events, known, decided = log(pool, session), [], {}
    finished = [e["grain"] for e in events if e["event"] == "finished"]
    for e in events:
        if e["event"] == "handed_out":
            known = finished[:e["results"]]
        elif e["event"] == "submitted":
            assert e["grain"] not in decided, e
            decided[e["grain"]] = list(known)
        elif e["event"] == "finished":
            assert e["exit_code"] == 0 and e["signal"] == 0 and e["result"] == finished.index(e["grain"]), e
    times = [e["time_s"] for e in events]
    assert times == sorted(times), "the clock was stepped"
    assert sorted(decided) == [1, 2, 3, 4, 11, 12, 13, 14], decided
    for grain, knew in decided.items():
        assert knew == [] if grain <= 4 else knew[-1] == grain - 10, (grain, knew)
    return events, decided


def whole(pool):
    code, output = run(pool, 1, "same")
    assert code == 0, output
    events, _ = check(pool, 1)
    assert kinds(events)[0] == "opened" and kinds(events)[-1] == "closed" and events[0]["ident"] == "decide"
    assert kinds(events).count("started") == kinds(events).count("finished") == 8 == events[-2]["results"]
    text = pool.dcs("session", "log", "1").stdout.decode().splitlines()
    assert len(text) == len(events) and text[0].endswith("  session opened by decide") and "handed to local" in "\n".join(text)
    names = pool.dcs("session", "log", "last", "-o", "name").stdout.decode().split()
    assert names == kinds(events)
    followed = pool.dcs("session", "log", "1", "--follow", "-o", "json").stdout.decode().splitlines()
    assert [e for line in followed for e in json.loads(line)["events"]] == events
    assert pool.dcs("session", "log", "77", check=False).returncode == 3
    assert pool.dcs("session", "log", check=False).returncode == 2
    return output


def killed(pool, output):
    """The scheduler and the control program are killed with -9 in the middle, and begin again."""
    for taken in (1, 3, 6):
        assert run(pool, 2, "same", taken)[0] == 3
        pool.kill("scheduler", "scheduler")
        pool.up()
    code, again = run(pool, 2, "same")
    assert code == 0 and sorted(again.split("\n")) == sorted(output.split("\n")), again
    events, _ = check(pool, 2)
    assert kinds(events).count("resumed") == 3 and kinds(events).count("opened") == 1, kinds(events)


def moved(pool):
    directory = os.path.join(pool.base, "two")
    pool.dcs("session", "export", "2", directory)
    lines = [json.loads(line) for line in open(os.path.join(directory, "log"))]
    before = log(pool, 2)
    assert lines == before
    pool.dcs("session", "import", directory, "--number", "5")
    after = log(pool, 5)
    assert after[:len(before)] == before and kinds(after)[len(before):] == ["imported", "handed_out"], after[-3:]
    with open(os.path.join(directory, "log"), "a") as file:
        file.write('{"time_s":1,"event":"submitted","grain":"x"}\n')
    result = pool.dcs("session", "import", directory, "--number", "6", check=False)
    assert result.returncode == 1 and f"log:{len(before) + 1}: \"grain\" must be" in result.stderr.decode(), result.stderr


def pictures(pool):
    """As the program decides: each of 11 to 14 follows from one more result than the one before it."""
    _, decided = check(pool, 1)
    svg, graph, dot = (os.path.join(pool.base, name) for name in ("time.svg", "flow.svg", "flow.dot"))
    pool.dcs("trace", "1", "--svg", svg, "--graph", graph, "--dot", dot)
    text = open(dot).read()
    edges = set(re.findall(r"^  (\w+) -> (\w+);$", text, re.M))
    for grain, knew in decided.items():
        source = [a for a, b in edges if b == f"g{grain}"]
        assert len(source) == 1, (grain, source)
        assert (source[0] == "d0") == (not knew), (grain, knew)
        # Between two decisions there may be more results than one.
        assert not knew or (f"g{knew[-1]}", source[0]) in edges, (grain, knew, edges)
    assert sum(b == "d5" or a[0] == "g" for a, b in edges) == 8, "every result goes to a decision"
    assert open(svg).read().count('class="box stay"') == 8
    assert open(graph).read().count('class="box grains"') == 8
    for path in (svg, graph):
        subprocess.run(["/usr/bin/python3", "-c", "import sys, xml.dom.minidom as x; x.parse(sys.argv[1])", path], check=True)
    assert pool.dcs("trace", "1", check=False).returncode == 2


def forgotten(pool, output):
    """The first result and all that was decided after it; then the program is run again."""
    first = int(output.split()[0])
    result = pool.dcs("grain", "restart", f"1:{first}", "--and-after", "-o", "json")
    told, said = json.loads(result.stdout), result.stderr.decode()
    assert told["forgotten"] == [11, 12, 13, 14] and told["results"] == 0 and told["restarted"] == [f"1:{first}"], told
    for words in ("delivery of results from 0 on (8 of 8)", "4 submissions that followed", "11, 12, 13, 14",
                  "becomes active again", "Run `decide 1 same` again"):
        assert words in said, said
    wait_for("the grain's second end", lambda: all(g["state"] == "finished" for g in pool.grains(1)))
    assert sorted(g["grain"] for g in pool.grains(1)) == [1, 2, 3, 4]
    code, again = run(pool, 1, "same")
    assert code == 0 and sorted(again.split("\n")) == sorted(output.split("\n")), again
    events = log(pool, 1)
    assert [e["grain"] for e in events if e["event"] == "forgotten"] == [11, 12, 13, 14]
    assert kinds(events).count("undone") == 1 and kinds(events).count("set_back") == 1
    assert kinds(events)[-1] == "closed" and kinds(events).count("submitted") == 12
    alone = pool.dcs("run", "--detach", "--", "true").stdout.decode().strip()
    pool.dcs("session", "wait", alone)
    said = pool.dcs("grain", "restart", f"{alone}:1", "--and-after").stderr.decode()
    assert f"`dcs session wait {alone}` waits for it" in said and "Run `" not in said, "the command again is another session"
    refused = pool.dcs("grain", "restart", "1:1-2", "--and-after", check=False)
    assert refused.returncode == 2, refused.stderr


def returned(pool):
    """A program that waits until four results were returned gets all four, also after one of them was forgotten."""
    code, output = run(pool, 9, "four")
    assert code == 0 and len(output.splitlines()) == 4, output
    pool.dcs("grain", "restart", f"9:{output.split()[2]}", "--and-after")  # the second one
    wait_for("the grain's second end", lambda: all(g["state"] == "finished" for g in pool.grains(9)))
    code, again = run(pool, 9, "four")
    assert code == 0 and sorted(again.split("\n")) == sorted(output.split("\n")), again
    assert json.loads(pool.dcs("session", "show", "9", "-o", "json").stdout)["session"]["sent"] == 4


def main():
    with Pool(servers=2, slots=2) as pool:
        output = whole(pool)
        killed(pool, output)
        moved(pool)
        pictures(pool)
        forgotten(pool, output)
        returned(pool)
    print("the log of a session is whole, drawn, carried along, and set back")


if __name__ == "__main__":
    main()
