#!/usr/bin/env bash
# The main job on a simulated hybrid cluster: a real control plane, nodes that
# are played, and the real e2e.test. The simulation runs no containers, so it
# cannot prove that Windows works, and the honest verdict is "inconclusive",
# exit code 3. Anything else is a failure of this demo. In the end the run is
# published to a bucket that is a folder, and shown as TestGrid would show it.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly expected=3 enough=16
results=results/demo-$(date -u +%Y%m%d-%H%M%S)

code=0
bin/op-readiness run --cluster kwok --additional --trial --suite-arg=--readiness.shorten=10 \
	--procs 4 --retries 1 --report-dir "$results" || code=$?

passed=$(grep -c '"type":"test-finished".*"state":"passed"' "$results/results.jsonl" || true)
echo
if [ "$code" -ne "$expected" ]; then
	echo "demo: exit code $code, and $expected was expected" >&2
	exit 1
fi
if [ "$passed" -lt "$enough" ]; then
	echo "demo: $passed tests passed, and at least $enough were expected; see $results/logs" >&2
	exit 1
fi

bucket=results/bucket
page=$results/preview.html
bin/op-readiness publish "$results" --bucket "file://$PWD/$bucket" --job ci-windows-op-readiness-demo --commit "$(git rev-parse HEAD 2>/dev/null || true)"
bin/op-readiness testgrid check "$bucket"
bin/op-readiness testgrid preview "$bucket" --html "$page"
cat <<TEXT

demo: $passed real tests, of Kubernetes and of this project, passed on the simulated cluster.
demo: the verdict is inconclusive (exit code $expected), as it must be: no container ran on
      Windows, so nothing that needs one is shown as proven.
demo: see it again:          bin/op-readiness report $results
demo: the grid of all runs:  file://$PWD/$page
TEXT
