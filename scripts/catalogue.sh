#!/bin/sh
# Writes specs/catalogue from real e2e.test binaries, or with --check compares
# them with it. Each binary says its own version.
#
#   scripts/catalogue.sh [--check] E2E_TEST...
set -eu
cd "$(dirname "$0")/.."

check=
if [ "${1:-}" = --check ]; then
	check=-check
	shift
fi
if [ $# -eq 0 ]; then
	echo "usage: scripts/catalogue.sh [--check] E2E_TEST..." >&2
	exit 2
fi

list=$(mktemp)
trap 'rm -f "$list"' EXIT
for binary; do
	version=$("$binary" --version)
	"$binary" --list-tests >"$list"
	go run ./specs/mkcatalogue $check "$version" <"$list"
done
