#!/bin/sh
# Every shell and Python script parses; programs that people start are executable.
set -eu
cd "$(dirname "$0")/../.."
for script in deploy/quickstart deploy/install-packages deploy/packages deploy/cmake/compile_cached tests/run .ci/run \
        tests/tidy/scripts.sh; do
    sh -n "$script"
    [ -x "$script" ] || { echo "$script is not executable"; exit 1; }
done
for script in libdcs/shell/*.sh libdcs/bridges/snakemake/status tests/process/*/*.sh; do
    sh -n "$script"
done
for script in libdcs/python/*.py libdcs/python/dcs/*.py libdcs/python/dcs/*/*.py libdcs/bridges/jobs.in \
        control-examples/*/*.py tests/process/*.py \
        tests/process/*/*.py tests/packages/*.py tests/perf/*.py tests/perf/run tests/tidy/*.py; do
    /usr/bin/python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$script"
done
if grep -rnE '^(<<<<<<<|>>>>>>>)' --include='*.cc' --include='*.h' --include='*.md' . >/dev/null; then
    echo "a merge conflict is committed"
    exit 1
fi
echo "all scripts parse"
