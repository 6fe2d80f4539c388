"""Measures which texts of errors the tests provoke: builds a copy of the sources in which each text notes when it is made,
runs tests of that copy, and prints how many texts were seen and which were not. A figure for people; no test judges by it.
    measure.py build [DIR] [TARGET...]  the copy, in DIR or build/words
    measure.py run [DIR] TEST...        runs tests of the copy and prints what they provoked; `all` for every test there is
    measure.py full [DIR]               with DCS_TESTS_FULL: builds, and runs every test
A TEST is a test program such as unit_wire, or a script such as process/bad_input, words/transcripts."""
import glob
import os
import shutil
import subprocess
import sys
import time

import sources

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = sources.ROOT
ROOM = 4096  # bytes, one for each text
KEPT = ("CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "backupd", "control-examples", "deploy", "docs", "grains",
        "grainserver", "libdcs", "scheduler", "tests")
PRELOADED = {"crash_calls": "libfaulty.so"}  # programs that a library has to be preloaded into
HOOK_PY = """seen = None
def word(number):
    global seen
    try:
        if seen is None:
            import mmap
            with open({path!r}, "r+b") as file:
                seen = mmap.mmap(file.fileno(), 0)
        seen[number] = 1
    except OSError:
        pass
"""


def noted(source, texts):
    """The source with a call before each of its texts."""
    put = []
    for number, text in texts:
        if text.path.endswith(".py"):
            put.append((text.at, 0, f"__import__('words_hook').word({number}) or "))
        else:
            put += [(text.at, 1, f"(dcs_word({number}), "), (text.end, 0, ")")]
    for at, _, inserted in sorted(put, reverse=True):  # from the end, so that places stay; at one place ) stands before (
        source = source[:at] + inserted + source[at:]
    return source


def write(path, text):
    """Only if it changes: a build begins where the last one was."""
    if not os.path.exists(path) or open(path).read() != text:
        with open(path, "w") as file:
            file.write(text)


def copy(to):
    for directory, _, names in os.walk(ROOT):
        relative = os.path.relpath(directory, ROOT)
        if relative != "." and relative.split(os.sep)[0] not in KEPT:
            continue
        os.makedirs(os.path.join(to, relative), exist_ok=True)
        for name in names:
            path = os.path.normpath(os.path.join(relative, name))
            if path.split(os.sep)[0] in KEPT and not path.endswith(".pyc"):
                yield path


def numbers(to, texts):
    """Those that a text has had before it keeps, so that a build compiles what has changed only."""
    path = os.path.join(to, "keys")
    keys = open(path).read().splitlines() if os.path.exists(path) else []
    known = {key: number for number, key in enumerate(keys)}
    for text in texts:
        if known.setdefault(text.key, len(keys)) == len(keys):
            keys.append(text.key)
    assert len(keys) <= ROOM, f"ROOM in measure.py is too small: remove {to}, or enlarge it"
    os.makedirs(to, exist_ok=True)
    with open(path, "w") as file:
        file.write("".join(key + "\n" for key in keys))
    return known


def make_copy(to):
    texts, noted_in, seen = sources.all_texts(), {}, os.path.join(to, "seen")
    known = numbers(to, texts)
    for text in texts:
        noted_in.setdefault(text.path, []).append((known[text.key], text))
    for path in copy(to):
        target = os.path.join(to, path)
        if path in noted_in:
            text = noted(open(os.path.join(ROOT, path)).read(), noted_in[path])
            if not path.endswith(".py"):
                text = f'#define DCS_WORDS_FILE "{seen}"\n#define DCS_WORDS_COUNT {ROOM}\n' \
                       f'#include "{to}/tests/words/words_hook.h"\n#line 1\n' + text
            write(target, text)
            shutil.copymode(os.path.join(ROOT, path), target)
        elif not os.path.exists(target) or os.path.getmtime(target) < os.path.getmtime(os.path.join(ROOT, path)):
            shutil.copy(os.path.join(ROOT, path), target)  # with the time of now: what was built before is built again
    write(os.path.join(to, "libdcs/python/words_hook.py"), HOOK_PY.format(path=seen))
    with open(seen, "wb") as file:
        file.write(bytes(ROOM))
    os.chmod(seen, 0o666)  # programs of other users note theirs too


def build(to, targets):
    make_copy(to)
    subprocess.run(["cmake", "--preset", "release"], cwd=to, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "build/release", "-j2", *(word for t in targets for word in ("--target", t))], cwd=to,
                   check=True)


def all_tests(to):
    programs = sorted(os.path.basename(path) for kind in ("unit", "paper", "crash")
                      for path in glob.glob(os.path.join(to, f"build/release/bin/{kind}_*"))
                      if os.access(path, os.X_OK) and os.path.isfile(path))
    scripts = sorted(set(subprocess.run(["ctest", "-N", "-L", "process"], cwd=os.path.join(to, "build/release"), text=True,
                                        capture_output=True, check=True).stdout.split()) - {"process"})
    return programs + [word for word in scripts if word.startswith(("process/", "words/"))]


def run(to, test):
    """The keys of the texts that were made while the test ran, and whether it passed."""
    keys = open(os.path.join(to, "keys")).read().splitlines()
    with open(os.path.join(to, "seen"), "r+b") as file:
        file.write(bytes(ROOM))
    if "/" in test:
        command = ["ctest", "--output-on-failure", "-R", f"^{test}$"]
    else:
        command = [os.path.join(to, "build/release/bin", test)]
    env = dict(os.environ)
    if test in PRELOADED:
        env["LD_PRELOAD"] = os.path.join(to, "build/release/tests", PRELOADED[test])
    with open(os.path.join(to, "last.log"), "wb") as log:
        done = subprocess.run(command, cwd=os.path.join(to, "build/release"), env=env, stdin=subprocess.DEVNULL, stdout=log,
                              stderr=log)
    made = open(os.path.join(to, "seen"), "rb").read()
    return {key for key, byte in zip(keys, made) if byte}, done.returncode == 0


def measure(to, tests):
    """Runs the tests and prints what they provoked. The number of tests that failed."""
    seen, failed = set(), 0
    for test in tests:
        began = time.monotonic()
        made, passed = run(to, test)
        seen |= made
        failed += not passed
        print(f"{test}: {len(made)} texts, {time.monotonic() - began:.0f} s{'' if passed else ', FAILED, see last.log'}", flush=True)
    keys = [text.key for text in sources.all_texts()]
    for key in keys:
        if key not in seen:
            print(f"not provoked: {key}")
    print(f"{sum(key in seen for key in keys)} of {len(keys)} texts of errors were provoked")
    return failed


def main(words):
    verb = words[0] if words else ""
    if verb not in ("build", "run", "full"):
        sys.exit(__doc__)
    if verb == "full" and not os.environ.get("DCS_TESTS_FULL"):
        print("it builds everything a second time and runs most tests: with DCS_TESTS_FULL only")
        return 77
    to = os.path.join(ROOT, "build/words")
    if len(words) > 1 and os.path.isabs(words[1]):
        to = words.pop(1)
    if verb == "build":
        return build(to, words[1:])
    if verb == "full":
        build(to, [])
    return measure(to, all_tests(to) if verb == "full" or words[1:] == ["all"] else words[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
