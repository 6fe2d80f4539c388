#!/usr/bin/python3
"""Appendix A (a grain) and Appendix B (a control program) of the 1990 paper, in today's C, on a real pool."""
import os
import re
import subprocess

from pool import Pool, program

TESTS = os.path.join(os.path.dirname(program("dcs")), "../tests")


def built(name):
    for folder in (TESTS, os.path.dirname(program("dcs"))):
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    raise AssertionError(f"{name} is not built")


def run(pool, text):
    return subprocess.run([built("appendix_b"), "-g", built("appendix_a"), "-c", "0", "-l", "2000", "-d", "5"],
                          input=text.encode(), env=pool.env, capture_output=True, timeout=600)


def reports(result):
    """What each result says, without the counters that depend on when it was asked."""
    lines = result.stdout.decode().splitlines()
    return [l for l in lines if re.match(r"Grain |.*factor", l)]


def main():
    number = "1000036000099\n"  # 1000003 * 1000033
    with Pool(2, 1, 1.0) as pool:
        first = run(pool, number)
        text = first.stdout.decode()
        assert first.returncode == 0, f"exit {first.returncode}: {first.stderr.decode()}{text}"
        assert "1000003" in text or "1000033" in text or "f4243" in text or "f4261" in text, text
        second = run(pool, number)
        assert second.returncode == 0, second.stderr.decode()
        first_grains = re.findall(r"Grain (\d+), session", text)
        assert first_grains and re.findall(r"Grain (\d+), session", second.stdout.decode()) == first_grains
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
