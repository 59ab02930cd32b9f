#!/bin/sh
# Makes the real control plane of the e2e tests, and prints its folder: programs from the Go modules go.mod names,
# the operators of operators/table.txt with their webhooks, and the CRDs that crds.txt names, each a file of a Go module.
#
#   sh build.sh                  make what is missing (minutes when Go's own cache is cold), then print the folder
#   sh build.sh --operators      the same with the operators that CI leaves out
#   sh build.sh --schedulers     the same with the kube-schedulers and the API server of other minor versions, which CI leaves out
#   sh build.sh --folder         print the folder, make nothing, need no Go
#   sh build.sh --missing        print what is not there yet, one file per line; make nothing
#   sh build.sh --program NAME   print the file of that operator, whether it is there or not
#
# The folder is outside the checkout, and its name says which versions are in it: a bump in go.mod builds anew. The name
# of an operator's file and of a CRD's says its version: a bump in operators/*/go.mod or crds.txt makes that file alone.
# A file appears under its own name only when it is whole.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# version_of MODULE FILE: the version that a go.mod requires.
version_of() {
    version=$(sed -n "s|^[[:space:]]*$1 \(v[^ ]*\).*|\1|p" "$here/$2")
    if [ -z "$version" ]; then
        echo "build.sh: $here/$2 names no version of $1" >&2
        exit 1
    fi
    echo "$version"
}
kubernetes=$(version_of k8s.io/kubernetes go.mod)
etcd=$(version_of go.etcd.io/etcd/server/v3 go.mod)
cache=${XDG_CACHE_HOME:-${HOME:?neither XDG_CACHE_HOME nor HOME is set}/.cache}
folder=$cache/corral-controlplane/$kubernetes-etcd-$etcd
# Dearest first: it fills Go's build cache for the two after it.
binaries='kube-scheduler kube-apiserver kube-controller-manager etcd'
# operators_of WHEN: the files of the operators whose "when" is among these words, and those of their webhooks.
# Most are of another Kubernetes, so what the others have cached is of no use to the first of them: Volcano's takes 210 s
# on two busy cores, 0.4 GB more of modules and 1.3 GB more of Go's build cache; Grove's 160 s and KAI's 140 s of one core,
# since they use other versions of what Kubernetes uses, and with it compile Kubernetes' client anew.
# Karpenter's takes 50 s of one core after JobSet's, with which it shares its versions, and 10 s when Go's build cache has
# it; by itself, with the Kubernetes it is written for, it took 290 s and 1.2 GB. Helm takes 55 s of one core after the control
# plane, whose versions it is built with, and kustomize 11 s.
operators_of() {
    grep '^[a-z]' "$here/operators/table.txt" | while read -r program place when module package webhooks; do
        case " $1 " in
        *" $when "*)
            version=$(version_of "$module" "operators/$place/go.mod")
            echo "$program-$version"
            [ -z "$webhooks" ] || echo "webhooks/$program-$version.yaml"
            ;;
        esac
    done
}
# column_of PROGRAM COLUMN: what operators/table.txt says of it.
column_of() {
    awk -v program="$1" -v column="$2" '$1 == program { print $column }' "$here/operators/table.txt"
}
wanted='ci'
crds=$(sed -n 's|^\([A-Za-z][^ ]*\)  *[^ ][^ ]*  *\(v[^ ]*\)  *[^ ].*|crds/\1-\2.yaml|p' "$here/crds.txt")
if [ -z "$crds" ]; then
    echo "build.sh: $here/crds.txt names no CRD" >&2
    exit 1
fi

missing() {
    for file in $binaries $(operators_of "$wanted") $crds; do
        [ -s "$folder/$file" ] || echo "$file"
    done
}

case ${1:-} in
--folder) echo "$folder" && exit 0 ;;
--missing) missing && exit 0 ;;
--program)
    program=$(operators_of 'ci all schedulers' | grep "^${2:?NAME is missing}-v") && echo "$folder/$program" && exit 0
    echo "build.sh: operators/table.txt has no $2" >&2 && exit 1
    ;;
--operators) wanted='ci all' ;;
--schedulers) wanted='ci schedulers' ;;
'') ;;
*) echo "usage: build.sh [--operators | --schedulers | --folder | --missing | --program NAME]" >&2 && exit 2 ;;
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

mkdir -p "$folder/crds" "$folder/webhooks"
partial=$folder/.partial.$$
trap 'rm -f "$partial"' EXIT
trap 'exit 130' INT TERM HUP
# Without these Kubernetes calls itself v0.0.0-master, and API servers refuse version skew they cannot see.
stamps_of() {
    stamp=k8s.io/component-base/version
    release=${1#v}
    major=${release%%.*}
    minor=${release#*.}
    minor=${minor%%.*}
    echo "-X $stamp.gitVersion=$1 -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor"
}
stamps=$(stamps_of "$kubernetes")

# build PACKAGE FOLDER STAMPS: a binary of the modules that the go.mod in FOLDER names, with the build tags in its file `tags`.
build() {
    (
        cd "$2"
        tags=$(cat tags 2>/dev/null) || tags=
        CGO_ENABLED=0 go build -trimpath -tags "$tags" -o "$partial" -ldflags "-s -w $3" "$1"
    ) </dev/null
}

# take MODULE VERSION FILE: a file of a module, of which Go checks the sum. Nothing that module needs is fetched.
take() {
    told=$(cd "$folder" && go mod download -json "$1@$2" </dev/null) || { echo "$told" >&2 && return 1; }
    unpacked=$(echo "$told" | sed -n 's|^[[:space:]]*"Dir": "\(.*\)",*$|\1|p')
    cat "$unpacked/$3" >"$partial"
}

for thing in $(missing); do
    started=$(date +%s)
    echo "build.sh: making $thing ..." >&2
    case $thing in
    crds/*)
        kind=${thing#crds/}
        take $(awk -v kind="${kind%%-*}" '$1 == kind { print $2, $3, $4 }' "$here/crds.txt")
        ;;
    webhooks/*)
        named=$(basename "$thing" .yaml)
        program=${named%-v*}
        take "$(column_of "$program" 4)" "${named#"$program-"}" "$(column_of "$program" 6)"
        ;;
    etcd) build go.etcd.io/etcd/server/v3 "$here" "$stamps" ;;
    *-v*)
        program=${thing%-v*}
        package=$(column_of "$program" 4)/$(column_of "$program" 5)
        its=''
        case $program in kube-scheduler-* | kube-apiserver-*) its=$(stamps_of "${thing#"$program-"}") ;; esac
        build "${package%/.}" "$here/operators/$(column_of "$program" 2)" "$its"
        ;;
    *) build "k8s.io/kubernetes/cmd/$thing" "$here" "$stamps" ;;
    esac
    mv -f "$partial" "$folder/$thing"
    echo "build.sh: made $thing in $(($(date +%s) - started)) s" >&2
done
echo "$folder"
