#!/bin/sh
# Shows Corral at work on this machine: a cluster, a scheduler and Corral in one process; no Kubernetes, no root.
#
#   sh deploy/demo.sh [what `corral demo` takes]
#
# Needs Python 3.11 or newer. What it installs goes into one folder of your cache, never into the checkout.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/deploy/venv.sh"

cache=${XDG_CACHE_HOME:-${HOME:?neither XDG_CACHE_HOME nor HOME is set}/.cache}
# One per checkout: two checkouts may be of two versions.
venv=$cache/corral/venv-$(printf '%s' "$root" | cksum | cut -d ' ' -f 1)
make_venv "$root" "$venv" -e .
exec "$venv/bin/corral" demo "$@"
