#!/bin/sh
# Every check of this project, as CI runs them: format, lint, types, imports, tests, and the tests against a real
# control plane.
#
#   sh tests/run.sh            everything that CI runs
#   sh tests/run.sh fast       the same without the real control plane
#   sh tests/run.sh operators  only the tests beside the operators that CI leaves out, which are built first
#   sh tests/run.sh thorough   only the tests that show at length what others show in short, which CI leaves out
#   sh tests/run.sh schedulers only those with kube-schedulers, or an API server, of other minor versions, which are built first
#
# Needs Python 3.11 or newer; and Go, or a control plane built earlier, for the last part. Without either it says how
# many tests were not run. The page is tried in Chromium: on Debian, as root, it is installed; elsewhere the tests are
# skipped where there is none, and the summary counts them. Its exit code is 0 only when all that ran succeeded; its last lines are pytest's own.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/deploy/venv.sh"
cd "$root"
case ${1:-} in
'' | fast | thorough | operators | schedulers) ;;
*) echo "usage: sh tests/run.sh [fast | thorough | operators | schedulers]" >&2 && exit 2 ;;
esac

# Corral is started some 400 times here: compiled each time, that takes a third longer.
unset PYTHONDONTWRITEBYTECODE
make_venv "$root" "$root/.venv" -e . --group dev
bin=$root/.venv/bin
case ${1:-} in
operators | schedulers)
    sh tests/controlplane/build.sh "--$1"
    exec env CORRAL_E2E=required "$bin/python" -m pytest -m "$1"
    ;;
thorough)
    sh tests/controlplane/build.sh
    exec env CORRAL_E2E=required "$bin/python" -m pytest -m 'thorough and not operators and not schedulers'
    ;;
esac
logs=$(mktemp -d)
simulator=
trap '[ -z "$simulator" ] || kill -s KILL -- "-$simulator" 2>/dev/null; rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM HUP
failed=

say() {
    printf '\n=== %s\n' "$*"
}

# check NAME COMMAND...: runs it, and remembers its name if it fails.
check() {
    name=$1
    shift
    say "$name"
    "$@" </dev/null || failed="$failed, $name"
}

# run_pytest NAME ARGUMENT...: the same for pytest, and keeps its output for the summary.
run_pytest() {
    name=$1
    shift
    say "$name"
    { "$bin/python" -m pytest "$@" </dev/null 2>&1 && echo 0 >"$logs/code" || echo $? >"$logs/code"; } | tee "$logs/$name"
    code=$(cat "$logs/code")
    if [ "$code" -eq 5 ]; then
        echo "No test was found: that is no success."
    fi
    [ "$code" -eq 0 ] || failed="$failed, $name"
}

# failures NAME: the lines that say which of its tests failed.
failures() {
    grep -oE '^(FAILED|ERROR) tests/.{0,380}' "$logs/$1"
}

# try_again NAME MARKERS: promises of seconds are broken where a starved machine gives a process no turn. At most six
# failed tests are run once more with no other test beside them; the last lines name them, whatever comes of it.
again=
try_again() {
    these=$(failures "$1") || return 0
    if [ "$(cat "$logs/code")" -ne 1 ] || [ "$(echo "$these" | wc -l)" -gt 6 ]; then
        return
    fi
    again="$again$these
"
    before=$failed
    run_pytest "$1-again" -m "$2" --last-failed --last-failed-no-failures none
    [ "$failed" != "$before" ] || failed=${failed%", $1"}
}

check 'ruff format' "$bin/ruff" format --check .
check 'ruff check' "$bin/ruff" check .
check 'mypy' "$bin/mypy"
check 'lint-imports' "$bin/lint-imports"
has() {
    command -v "$1" >/dev/null 2>&1
}

if ! { has chromium || has chromium-browser || has google-chrome; } && [ "$(id -u)" = 0 ] && has apt-get; then
    say 'installing Chromium'
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } \
        </dev/null >"$logs/chromium" 2>&1 || tail -n 5 "$logs/chromium"
fi
# A file's tests stay together and in order on one of the two workers.
run_pytest tests -m 'not e2e and not thorough' -n 2 --dist loadfile
# 150 histories; some more in which pods are preempted for others, or nodes come and go; and the first of them again, to
# be equal whatever strings hash to. simulate PYTHON JOBS
simulate='for histories in "--seeds 150" "--seeds 60 --preempting" "--seeds 10 --growing" "--seeds 10 --twice"; do
    "$0" -m tests.sim $histories --jobs "$1" || exit
done'

not_run=
if [ "${1:-}" = fast ]; then
    not_run='fast was asked for'
    check simulator sh -c "$simulate" "$bin/python" 2
elif [ -z "$(sh tests/controlplane/build.sh --missing)" ] || command -v go >/dev/null 2>&1; then
    # Beside the e2e tests, which wait most of the time: it gets what they leave of the machine.
    # Its own process group, so that all of it can be stopped.
    idle='nice -n 19'
    if chrt --idle 0 true 2>/dev/null; then
        idle='chrt --idle 0' # whoever else wakes up has the core at once
    fi
    # A session of its own is as much to the kernel as any other, whatever its processes are (sched(7), "The autogroup
    # feature"): so the session is nice, too.
    last='{ echo 19 >/proc/self/autogroup; } 2>/dev/null; '
    setsid $idle sh -c "$last$simulate" "$bin/python" 2 </dev/null >"$logs/simulator" 2>&1 &
    simulator=$!
    check 'building the control plane' sh tests/controlplane/build.sh
    CORRAL_E2E=required
    export CORRAL_E2E
    # Those that wait most of the time on three control planes, then those that measure on one.
    in_ci='e2e and not operators and not schedulers and not thorough'
    shared="$in_ci and not alone"
    run_pytest e2e -m "$shared" -n 3 --dist loadfile
    kill -s STOP -- "-$simulator" 2>/dev/null || true # the others have the machine to themselves
    try_again e2e "$shared"
    measuring="$in_ci and alone"
    run_pytest alone -m "$measuring"
    try_again alone "$measuring"
    kill -s CONT -- "-$simulator" 2>/dev/null || true
    say simulator
    wait "$simulator" || failed="$failed, simulator"
    simulator=
    cat "$logs/simulator"
else
    not_run='this machine has neither Go nor a control plane built earlier'
    check simulator sh -c "$simulate" "$bin/python" 2
fi
if [ -n "$not_run" ]; then
    "$bin/python" -m pytest -m e2e --collect-only -q </dev/null >"$logs/collected" 2>&1 || true
    tests=$(grep -c '::' "$logs/collected") || true
    say "NOT RUN: $tests tests against the real control plane; $not_run."
fi

if [ -n "$failed" ]; then
    # Where only the end of this is kept, it says what failed and why.
    for name in tests e2e e2e-again alone alone-again; do
        if [ -f "$logs/$name" ] && failures "$name" >/dev/null; then
            say "the end of $name"
            tail -n 80 "$logs/$name"
        fi
    done
    if [ -f "$logs/simulator" ] && grep -qE '^seed .*, step |TOO FEW' "$logs/simulator"; then
        say 'what the simulator found'
        grep -E '^seed .*, step |TOO FEW' "$logs/simulator" | head -n 20
    fi
    say "FAILED:${failed#,}"
else
    say 'All that ran succeeded.'
fi
for name in tests e2e e2e-again alone alone-again; do
    [ ! -f "$logs/$name" ] || tail -n 1 "$logs/$name"
done
[ -z "$again" ] || printf 'Failed, and tried again with nothing beside:\n%s' "$again"
[ -z "$failed" ]
