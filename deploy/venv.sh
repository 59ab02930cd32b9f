# shellcheck shell=sh
# Sourced by deploy/demo.sh and tests/run.sh: a Python that is new enough, and an environment made from it.

# find_python: prints the command of a Python >= 3.11 that can make environments; PYTHON in the environment goes first.
find_python() {
    found=
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
        version=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null </dev/null) || continue
        if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 </dev/null; then
            echo "$candidate"
            return 0
        fi
        found="$found $candidate=$version"
    done
    if [ -n "$found" ]; then
        echo "Corral needs Python 3.11 or newer, with its venv module (Debian and Ubuntu: apt install python3-venv). Found:$found." >&2
    else
        echo "Corral needs Python 3.11 or newer, and there is no python3 on the PATH." >&2
    fi
    echo "Name another one with PYTHON=/path/to/python3." >&2
    return 1
}

# make_venv CHECKOUT FOLDER ARGUMENT...: an environment in FOLDER after `pip install ARGUMENT...`, run in CHECKOUT.
# It is used again as it is while pyproject.toml, the arguments and the place of the checkout are the same.
make_venv() {
    checkout=$1
    venv=$2
    shift 2
    wanted="$(cksum <"$checkout/pyproject.toml") $checkout $*"
    if [ "$(cat "$venv/.installed" 2>/dev/null)" = "$wanted" ] && "$venv/bin/python" -c '' 2>/dev/null </dev/null; then
        return 0
    fi
    python=$(find_python) || return 1
    echo "Installing into $venv; this is done once." >&2
    rm -f "$venv/.installed"
    # An environment whose Python does not run any more is made anew; any other keeps what it has.
    "$venv/bin/python" -c '' 2>/dev/null </dev/null || "$python" -m venv --clear "$venv" </dev/null || return 1
    (
        cd "$checkout"
        "$venv/bin/python" -m pip install --disable-pip-version-check -q --upgrade 'pip>=25.1' &&
            "$venv/bin/python" -m pip install --disable-pip-version-check -q "$@"
    ) </dev/null || return 1
    echo "$wanted" >"$venv/.installed"
}
