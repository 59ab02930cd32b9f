#!/bin/sh
# Builds the real control plane of the e2e tests from the Go modules go.mod names, and prints its folder.
#
#   sh build.sh            build what is missing (minutes when Go's own cache is cold), then print the folder
#   sh build.sh --folder   print the folder, build nothing, need no Go
#   sh build.sh --missing  print the binaries that are not there yet, one per line; build nothing
#
# The folder is outside the checkout, and its name says which versions are in it: a bump in go.mod builds anew.
# A binary appears under its own name only when it is whole.
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

missing() {
    for binary in $binaries; do
        [ -x "$folder/$binary" ] || echo "$binary"
    done
}

case ${1:-} in
--folder) echo "$folder" && exit 0 ;;
--missing) missing && exit 0 ;;
'') ;;
*) echo "usage: build.sh [--folder | --missing]" >&2 && exit 2 ;;
esac

if [ -z "$(missing)" ]; then
    echo "build.sh: everything is built already" >&2
    echo "$folder"
    exit 0
fi
if ! command -v go >/dev/null 2>&1; then
    echo "build.sh: no 'go' on this machine, so these cannot be built: $(missing | tr '\n' ' ')" >&2
    exit 3
fi

mkdir -p "$folder"
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
for binary in $(missing); do
    started=$(date +%s)
    echo "build.sh: building $binary ..." >&2
    (
        cd "$here"
        CGO_ENABLED=0 go build -trimpath -o "$partial" \
            -ldflags "-s -w -X $stamp.gitVersion=$kubernetes -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor" \
            "$(package_of "$binary")"
    ) </dev/null
    mv -f "$partial" "$folder/$binary"
    echo "build.sh: built $binary in $(($(date +%s) - started)) s" >&2
done
echo "$folder"
