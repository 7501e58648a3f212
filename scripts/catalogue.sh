#!/bin/sh
# Writes specs/catalogue from real e2e.test and op-readiness.test binaries, or with
# --check compares them with it. Each e2e.test says its own version.
#
#   scripts/catalogue.sh [--check] BINARY...
set -eu
cd "$(dirname "$0")/.."

check=
if [ "${1:-}" = --check ]; then
	check=-check
	shift
fi
if [ $# -eq 0 ]; then
	echo "usage: scripts/catalogue.sh [--check] BINARY..." >&2
	exit 2
fi

list=$(mktemp)
trap 'rm -f "$list"' EXIT
for binary; do
	case $binary in
	*op-readiness.test*) list_of=op-readiness ;;
	*) list_of=$("$binary" --version) ;;
	esac
	"$binary" --list-tests >"$list"
	go run ./specs/mkcatalogue $check "$list_of" <"$list"
done
