#!/bin/sh
# Makes the real control plane of the e2e tests, and prints its folder: programs from the Go modules go.mod names, and
# the CRDs that crds.txt names, each a file of a Go module.
#
#   sh build.sh            make what is missing (minutes when Go's own cache is cold), then print the folder
#   sh build.sh --folder   print the folder, make nothing, need no Go
#   sh build.sh --missing  print what is not there yet, one file per line; make nothing
#
# The folder is outside the checkout, and its name says which versions are in it: a bump in go.mod builds anew. The name
# of a CRD's file says its version: a bump in crds.txt fetches that file alone.
# A file appears under its own name only when it is whole.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
version_of() {
    sed -n "s|^[[:space:]]*$1 \(v[^ ]*\).*|\1|p" "$here/go.mod"
}
kubernetes=$(version_of k8s.io/kubernetes)
etcd=$(version_of go.etcd.io/etcd/server/v3)
if [ -z "$kubernetes" ] || [ -z "$etcd" ]; then
    echo "build.sh: $here/go.mod does not name the versions of Kubernetes and etcd" >&2
    exit 1
fi
cache=${XDG_CACHE_HOME:-${HOME:?neither XDG_CACHE_HOME nor HOME is set}/.cache}
folder=$cache/corral-controlplane/$kubernetes-etcd-$etcd
# Dearest first: it fills Go's build cache for the two after it.
binaries='kube-scheduler kube-apiserver kube-controller-manager etcd'
crds=$(sed -n 's|^\([A-Za-z][^ ]*\)  *[^ ][^ ]*  *\(v[^ ]*\)  *[^ ].*|crds/\1-\2.yaml|p' "$here/crds.txt")
if [ -z "$crds" ]; then
    echo "build.sh: $here/crds.txt names no CRD" >&2
    exit 1
fi

missing() {
    for binary in $binaries; do
        [ -x "$folder/$binary" ] || echo "$binary"
    done
    for crd in $crds; do
        [ -s "$folder/$crd" ] || echo "$crd"
    done
}

case ${1:-} in
--folder) echo "$folder" && exit 0 ;;
--missing) missing && exit 0 ;;
'') ;;
*) echo "usage: build.sh [--folder | --missing]" >&2 && exit 2 ;;
esac

if [ -z "$(missing)" ]; then
    echo "build.sh: everything is there already" >&2
    echo "$folder"
    exit 0
fi
if ! command -v go >/dev/null 2>&1; then
    echo "build.sh: no 'go' on this machine, so these cannot be made: $(missing | tr '\n' ' ')" >&2
    exit 3
fi

mkdir -p "$folder/crds"
partial=$folder/.partial.$$
trap 'rm -f "$partial"' EXIT
trap 'exit 130' INT TERM HUP
package_of() {
    case $1 in
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    *) echo "k8s.io/kubernetes/cmd/$1" ;;
    esac
}
# Without these a binary calls itself v0.0.0-master, and API servers refuse version skew they cannot see.
stamp=k8s.io/component-base/version
release=${kubernetes#v}
major=${release%%.*}
minor=${release#*.}
minor=${minor%%.*}
build() {
    (
        cd "$here"
        CGO_ENABLED=0 go build -trimpath -o "$partial" \
            -ldflags "-s -w -X $stamp.gitVersion=$kubernetes -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor" \
            "$(package_of "$1")"
    ) </dev/null
}

# take KIND: its CRD out of the module that carries it, of which Go checks the sum. Nothing that module needs is fetched.
take() {
    line=$(sed -n "s|^$1  *||p" "$here/crds.txt")
    module=${line%% *}
    line=$(echo "${line#* }" | sed 's|^ *||')
    version=${line%% *}
    path=$(echo "${line#* }" | sed 's|^ *||')
    told=$(cd "$folder" && go mod download -json "$module@$version" </dev/null) || { echo "$told" >&2 && return 1; }
    unpacked=$(echo "$told" | sed -n 's|^[[:space:]]*"Dir": "\(.*\)",*$|\1|p')
    cat "$unpacked/$path" >"$partial"
}

for thing in $(missing); do
    started=$(date +%s)
    echo "build.sh: making $thing ..." >&2
    case $thing in
    crds/*)
        kind=${thing#crds/}
        take "${kind%%-*}"
        ;;
    *) build "$thing" ;;
    esac
    mv -f "$partial" "$folder/$thing"
    echo "build.sh: made $thing in $(($(date +%s) - started)) s" >&2
done
echo "$folder"
