#!/usr/bin/env bash
# Fails when a generated file is not what its generator makes.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

go run ./docs/generate "$fresh"
if ! diff -ru docs/cli "$fresh"; then
	echo "docs/cli is out of date: run 'make generate' and commit" >&2
	exit 1
fi

go run ./cmd/op-readiness config schema >"$fresh/op-readiness.schema.json"
if ! diff -u docs/op-readiness.schema.json "$fresh/op-readiness.schema.json"; then
	echo "docs/op-readiness.schema.json is out of date: run 'make generate' and commit" >&2
	exit 1
fi
go run ./cmd/op-readiness config schema -o markdown >"$fresh/configuration-fields.md"
if ! diff -u docs/configuration-fields.md "$fresh/configuration-fields.md"; then
	echo "docs/configuration-fields.md is out of date: run 'make generate' and commit" >&2
	exit 1
fi
go run ./cmd/op-readiness generate testgrid --verify
go run ./cmd/op-readiness generate prow --verify
go run ./cmd/op-readiness generate workflows --verify

if ! (cd scripts/gitleaks && go run .) | diff -u internal/redact/gitleaks.json -; then
	echo "internal/redact/gitleaks.json is out of date: run 'make generate' and commit" >&2
	exit 1
fi

# The list of op-readiness.test is compared with the binary of these sources, which
# is built when the cache has none.
scripts/catalogue.sh --check "$(go run ./cmd/op-readiness e2e fetch op-readiness.test)"

# Those of Kubernetes are compared with those binaries that are in the cache.
for binary in $(go run ./cmd/op-readiness e2e list -o json | sed -n 's/^ *"path": "\(.*e2e\.test\)",\{0,1\}$/\1/p'); do
	version=$("$binary" --version)
	if [ -f "specs/catalogue/$version.txt.gz" ]; then
		scripts/catalogue.sh --check "$binary"
	fi
done
