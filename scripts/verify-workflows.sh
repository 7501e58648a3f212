#!/usr/bin/env bash
# Fails when actionlint finds something in a workflow, in one that is generated
# from a configuration with every field, or when a script of the action is no
# bash.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
go run ./cmd/op-readiness generate workflows --config internal/ci/config/testdata/good/every-field.yaml --dir "$fresh"

go tool -modfile=scripts/actionlint/go.mod actionlint .github/workflows/*.yml "$fresh"/*.yml
for script in scripts/*.sh scripts/action/*.sh .ci/run; do
	bash -n "$script"
done
