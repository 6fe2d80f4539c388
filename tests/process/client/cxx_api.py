#!/usr/bin/python3
"""An installation in a directory of its own, and programs outside of the source tree that use it: C by pkg-config, C++ by
find_package and dcs.hpp, Python by `import dcs`; everything on docs/CXX.md; dcs.hpp call by call, without a warning."""
import os
import re
import subprocess

from hurry import Hurry
from pool import BIN, ROOT, Pool

BUILD = os.path.dirname(BIN)
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-pedantic", "-Werror"]
ANSWER = b"2: 2\n5: 5\n10: 2 5\n17: 17\n26: 2 13\n"


def run(command, env, cwd, code=0):
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, timeout=600)
    assert done.returncode == code, f"{command}: exit {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}"
    return done.stdout


def write_page(directory):
    text = open(os.path.join(ROOT, "docs/CXX.md")).read()
    names = []
    for kind, name, body in re.findall(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", text, re.M | re.S):
        names.append(name or kind)
        with open(os.path.join(directory, name or kind), "w") as file:
            file.write(body)
    assert sorted(names) == ["CMakeLists.txt", "build", "doubled.c", "pools.c", "squares.c", "squares.cc"], names


def page(pool, env, prefix):
    """The page's programs, by both ways of building."""
    directory = os.path.join(pool.base, "page")
    os.mkdir(directory)
    write_page(directory)
    run(["sh", "-ec", open(os.path.join(directory, "build")).read()], env, directory)
    assert run(["./squares"], env, directory) == b"65: 5 13\n"
    run(["cmake", "-S", ".", "-B", "out", f"-DCMAKE_PREFIX_PATH={prefix}"], env, directory)
    run(["cmake", "--build", "out"], env, directory)
    pool.dcs("session", "clean", "105")
    assert run(["out/squares_in_c"], env, directory) == b"65: 5 13\n"
    for _ in range(2):  # and as a replay
        assert run(["out/squares_in_cxx"], env, directory) == ANSWER
    grain = os.path.join(directory, "out/doubled")
    assert subprocess.run([grain], input=b"4 5", stdout=subprocess.PIPE, check=True).stdout == b"8\n10\n"
    assert pool.dcs("run", "--", grain, data=b"21\n").stdout == b"42\n"
    run(["sh", "-c", "cc -Wall -Wextra -o pools pools.c $(pkg-config --cflags --libs dcs)"], env, directory)
    known = dict(env, LD_LIBRARY_PATH=f"{prefix}/lib", DCS_DIR="/nowhere")
    assert run(["./pools", pool.dir, pool.dir], known, directory) == b"2 active hosts, the first is local1\n" * 2
    run(["./pools", "nowhere"], known, directory, 1)
    by_hand = run(["sh", "-c", "cc -o hand doubled.c $(pkg-config --cflags --libs dcs-grain) && echo 3 | ./hand"], env, directory)
    assert by_hand == b"6\n", by_hand


def python(pool, env, prefix):
    folders = [where for where, names, _ in os.walk(prefix) if "dcs" in names and where.endswith("-packages")]
    assert len(folders) == 1, folders
    env = dict(env, PYTHONPATH=folders[0], PYTHONDONTWRITEBYTECODE="1")
    text = ("import dcs, dcs.grain, dcs._library\nassert dcs._library._candidates() == [%r]\n"
            "with dcs.Executor('installed') as e: print(e.submit('math:gcd', 12, 18).result())" % os.path.join(prefix, "lib/libdcs.so.0"))
    assert run(["/usr/bin/python3", "-c", text], env, pool.base) == b"6\n"
    assert run([os.path.join(prefix, "bin/queens"), "5"], env, pool.base) == b"10\n"
    assert run([os.path.join(prefix, "bin/count_primes"), "--grains", "3", "1000"], env, pool.base) == b"168\n"


def header(pool, env, prefix):
    """dcs.hpp by itself, as strict as compilers are."""
    source, made = os.path.join(ROOT, "tests/process/client/cxx_api.cc"), os.path.join(pool.base, "cxx_api")
    flags = run(["pkg-config", "--cflags", "--libs", "dcs"], env, pool.base).decode().split()
    run(["g++", "-std=c++20", *WARNINGS, source, "-o", made, *flags, f"-Wl,-rpath,{prefix}/lib"], env, pool.base)
    pool.dcs("session", "clean", "all", "--yes")  # of the page; this program wants their numbers
    assert run([made, "all"], env, pool.base) == b"every call did what it says\n"
    run([made, "forked"], env, pool.base)
    pool.dcs("session", "clean", "all", "--yes")
    run([made, "two"], env, pool.base)
    assert run([made, "at-exit"], env, pool.base) == b"of the program\nof a handler\n"
    for how, code, state in (("closed", 0, "terminated"), ("left", 0, "active"), ("thrown", 7, "active")):
        ended = subprocess.run([made, "scope", how], env=env, capture_output=True, text=True, timeout=600)
        assert ended.returncode == code and ("which ends 1 of its grains" in ended.stderr) == (how == "closed"), ended
        states = {s["ident"]: s["state"] for s in pool.json("session", "ls")["sessions"]}
        assert states["cxx-" + how] == state, states


def main():
    with Pool(2, 2, 1.0) as pool, Hurry(pool):
        prefix = os.path.join(pool.base, "prefix")
        run(["cmake", "--install", BUILD, "--prefix", prefix], dict(os.environ), pool.base)
        env = dict(pool.env, PKG_CONFIG_PATH=os.path.join(prefix, "lib/pkgconfig"))
        page(pool, env, prefix)
        header(pool, env, prefix)
        python(pool, env, prefix)
    print("3 passed, 0 failed")


if __name__ == "__main__":
    main()
