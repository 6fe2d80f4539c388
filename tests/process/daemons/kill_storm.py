#!/usr/bin/python3
"""Factors a list on 3 servers x 1 slot while scheduler, servers, control program and whole hosts are killed with -9.

    kill_storm.py [--seed N] [--kills N] [--interval S] [--numbers N] [--seconds S]

Checks that the printed factors equal those of an undisturbed run, that every grain has exactly one
result and that no acknowledged submission is missing; prints the CPU time spent and lost.
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import time

from hurry import Hurry
from pool import BIN, FULL, ROOT, CpuSampler, Pool, program, wait_for

LIST = os.path.join(ROOT, "control-examples/find_factor/cunningham.txt")
# 6^127+1: its p22 takes long enough for every kind of kill to happen.
LONG = "82059111775568254973167585614036026900274671294339718493230735974264634199477128769253632877"
LONG_FACTORS = (6557252639250807127523, 12514251972598061031154549270275982573061110378811783176435900357554799)


def numbers(count):
    lines = [line for line in open(LIST) if line[:1].isdigit()]
    return LONG + "\n" + "".join(lines[:count - 1])


def find_factor(pool, text, options):
    path = os.path.join(pool.base, "list")
    with open(path, "w") as file:
        file.write(text)
    errors = open(os.path.join(pool.base, "find_factor.log"), "a")
    return pool.start([program("find_factor"), *options], stdin=open(path), stdout=subprocess.PIPE, stderr=errors)


def grain_rows(pool):
    rows = []
    for session in pool.json("session", "ls")["sessions"]:
        rows += pool.grains(session["session"])
    return rows


def undisturbed(text, options, interval):
    with Pool(3, 1, interval) as pool:
        sampler = CpuSampler(pool)
        sampler.start()
        process = find_factor(pool, text, options)
        out = process.communicate(timeout=1800)[0].decode()
        assert process.returncode == 0, f"undisturbed find_factor: exit {process.returncode}"
        sampler.stop_now = True
        rows = grain_rows(pool)
        return out, sampler.total(), {(r["session"], r["grain"]) for r in rows if r["state"] == "finished"}


class Storm:
    def __init__(self, pool, rng, text, options):
        self.pool, self.rng, self.text, self.options = pool, rng, text, options
        self.counts = {"scheduler": 0, "grainserver": 0, "control": 0, "host": 0}
        self.submitted, self.lost, self.next_kinds = set(), [], []
        self.control = find_factor(pool, text, options)

    def note_submissions(self):
        """Everything that the pool acknowledged and showed must be there for ever after."""
        try:
            for row in grain_rows(self.pool):
                self.submitted.add((row["session"], row["grain"]))
        except AssertionError:
            pass  # the scheduler is down at the moment

    def running_cpu(self, host):
        """CPU seconds per running incarnation that the scheduler has taken in."""
        known = {}
        for row in grain_rows(self.pool):
            if row["state"] == "running" and row["host"] == host:
                known[f"{row['session']},{row['grain']},{row['incarnation']}"] = row["run_cpu_s"]
        return known

    def kill_host(self):
        host = self.rng.choice(self.pool.host_names())
        try:
            known = self.running_cpu(host)
        except AssertionError:
            return
        if not known:
            return
        killed = self.pool.kill_host(host)
        for entry, cpu in killed:
            reported = known.get(entry.split(",", 2)[2])  # without host and user
            if reported is not None and cpu is not None:
                self.lost.append(max(0.0, cpu - reported))
        self.counts["host"] += 1
        if self.rng.random() < 0.7:  # stay away past the call-in limit, so that the grains move
            time.sleep(self.pool.interval * 6 * 1.3)
        self.pool.up()

    def kill_one(self):
        if not self.next_kinds:  # every kind in each round, in random order
            self.next_kinds = list(self.counts)
            self.rng.shuffle(self.next_kinds)
        what = self.next_kinds.pop()
        if what == "host":
            self.kill_host()
        elif what == "control":
            if self.control.poll() is None:
                self.control.kill()
                self.control.wait()
                self.counts["control"] += 1
                self.control = find_factor(self.pool, self.text, self.options)
        else:
            name = "scheduler" if what == "scheduler" else self.rng.choice(self.pool.host_names())
            if self.pool.kill(what, name):
                self.counts[what] += 1
            time.sleep(self.rng.random() * self.pool.interval * 2)
            self.pool.up()

    def run(self, kills, seconds):
        end = time.monotonic() + seconds
        while self.control.poll() is None and sum(self.counts.values()) < kills and time.monotonic() < end:
            time.sleep(self.rng.random() * self.pool.interval)
            self.note_submissions()
            self.kill_one()
        self.pool.up()
        with Hurry(self.pool):
            out = self.control.communicate(timeout=1800)[0].decode()
        if self.control.returncode != 0:
            sys.stdout.write(open(os.path.join(self.pool.base, "find_factor.log")).read()[-4000:])
        assert self.control.returncode == 0, f"find_factor: exit {self.control.returncode}"
        return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(os.environ.get("DCS_SEED", "1")))
    parser.add_argument("--kills", type=int, default=60 if FULL else 8)
    parser.add_argument("--interval", type=float, default=1.0)
    parser.add_argument("--numbers", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1800 if FULL else 90)
    parser.add_argument("--options", default="")
    a = parser.parse_args()
    print(f"seed {a.seed}; again: python3 tests/process kill_storm --seed {a.seed} --kills {a.kills}")
    text, options = numbers(a.numbers), a.options.split()
    expected, cpu_calm, finished_calm = undisturbed(text, options, a.interval)
    known = open(os.path.join(ROOT, "control-examples/find_factor/cunningham.answers")).read()
    first, rest = expected.split("\n", 1)
    assert first == f"{LONG} = {LONG_FACTORS[0]} * {LONG_FACTORS[1]}", first
    assert rest and known.startswith(rest), rest
    with Pool(3, 1, a.interval, patient=False, modest=True) as pool:
        sampler = CpuSampler(pool)
        sampler.start()
        storm = Storm(pool, random.Random(a.seed), text, options)
        out = storm.run(a.kills, a.seconds)
        sampler.stop_now = True
        rows = grain_rows(pool)
        present = {(r["session"], r["grain"]) for r in rows}
        assert len(present) == len(rows), "a grain is listed twice"
        assert storm.submitted <= present, f"acknowledged submissions are gone: {storm.submitted - present}"
        indices = {}
        for row in rows:
            if row["state"] == "finished":
                indices.setdefault(row["session"], []).append(row["result_index"])
        for session, taken in indices.items():
            assert len(taken) == len(set(taken)) and min(taken) >= 0, f"session {session}: two results share an index"
        # control program run once more from the start: replays, same lines
        again = find_factor(pool, text, options)
        assert again.communicate(timeout=600)[0].decode() == out and again.returncode == 0, "the replay differs"
    print("kills:", ", ".join(f"{n} {what}" for what, n in storm.counts.items()))
    print(f"CPU seconds of grains: {cpu_calm:.1f} undisturbed, {sampler.total():.1f} under kills")
    if storm.lost:
        print(f"lost per killed grain: at most {max(storm.lost):.2f} s, in all {sum(storm.lost):.2f} s; "
              f"one call-in interval is {a.interval:.1f} s")
    assert out == expected, f"factors differ:\n{out}\nundisturbed:\n{expected}"
    assert min(storm.counts.values()) >= 1, f"the list was factored before every kind was killed: {storm.counts}"
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
