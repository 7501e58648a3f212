#!/usr/bin/env bash
# Runs one command of op-readiness for action.yml. The inputs are in OPR_*; none of
# them is ever read as code.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/lib.sh"
# One stream: the runner reads two of them in no order.
exec 2>&1

# The step's own outputs, from the start: what is in this file goes before what a
# line of the log could set, also where a command comes to nothing.
for name in verdict proven total rerun matrix kubeconfig url; do output "$name" ""; done

binary=$OPR_BINARY
command=$OPR_COMMAND
args=()

# lines INPUT appends the lines of an input to list, without blanks around them.
lines() {
  list=()
  local line
  while IFS= read -r line || [[ -n $line ]]; do
    line=${line#"${line%%[![:space:]]*}"}
    line=${line%"${line##*[![:space:]]}"}
    if [[ -n $line ]]; then list+=("$line"); fi
  done <<<"$1"
}

# only INPUT VALUE COMMAND... refuses a value that the command has no use for.
only() {
  local input=$1 value=$2 name
  shift 2
  if [[ -z $value ]]; then return; fi
  for name in "$@"; do
    if [[ $name == "$command" ]]; then return; fi
  done
  fail "$input: the command \"$command\" does not take it, only $*: leave it out"
}

# number INPUT VALUE refuses what is not a whole number.
number() {
  if [[ -n $2 && ! $2 =~ ^[0-9]{1,9}$ ]]; then
    fail "$1: \"$2\" is not a whole number"
  fi
}

case $command in
  run | plan | preflight | merge | publish | comment | cluster | reap) ;;
  *) fail "command: \"$command\" is not known: use run, plan, preflight, merge, publish, comment, cluster, reap" ;;
esac
only kubeconfig "$OPR_KUBECONFIG" run preflight
only categories "$OPR_CATEGORIES" run plan
only shard "$OPR_SHARD" run
only shards "$OPR_SHARDS" plan
only kubernetes-version "$OPR_KUBERNETES_VERSION" run plan cluster
only provider "$OPR_PROVIDER" run plan preflight
only cluster "$OPR_CLUSTER" run plan cluster
only retries "$OPR_RETRIES" run
only results "$OPR_RESULTS" merge publish comment
only report-dir "$OPR_REPORT_DIR" run plan merge
only token "$OPR_TOKEN" comment
number retries "$OPR_RETRIES"
number shards "$OPR_SHARDS"
if [[ $OPR_SUMMARY != true && $OPR_SUMMARY != false ]]; then
  fail "summary: \"$OPR_SUMMARY\" is not true or false"
fi

list=()
lines "${OPR_CATEGORIES//,/$'\n'}"
for category in ${list[@]+"${list[@]}"}; do args+=("--category=$category"); done
if [[ -n $OPR_SHARD ]]; then
  if [[ ! $OPR_SHARD =~ ^([0-9]{1,9})/([0-9]{1,9})$ ]]; then
    fail "shard: \"$OPR_SHARD\" does not say which of how many: write it as 2/3"
  fi
  args+=("--shard=${BASH_REMATCH[1]}" "--shards=${BASH_REMATCH[2]}")
fi
if [[ -n $OPR_SHARDS ]]; then args+=("--shards=$OPR_SHARDS"); fi
if [[ -n $OPR_KUBERNETES_VERSION ]]; then args+=("--kubernetes-version=$OPR_KUBERNETES_VERSION"); fi
if [[ -n $OPR_PROVIDER ]]; then args+=("--provider=$OPR_PROVIDER"); fi
if [[ -n $OPR_RETRIES ]]; then args+=("--retries=$OPR_RETRIES"); fi

report_dir=
case $command in
  run | merge)
    report_dir=${OPR_REPORT_DIR:-$(mktemp -d "$(temp_folder)/op-readiness-XXXXXX")/results}
    args+=("--report-dir=$report_dir")
    ;;
  plan) report_dir=$OPR_REPORT_DIR ;;
esac
# Also for a run that is killed.
output report-dir "$report_dir"

case $command in
  cluster)
    if [[ -z $OPR_CLUSTER ]]; then fail "cluster: which provider is to make it? Say kwok or kind"; fi
    args=(up "$OPR_CLUSTER" ${args[@]+"${args[@]}"})
    ;;
  run | plan)
    if [[ -n $OPR_CLUSTER ]]; then args+=("--cluster=$OPR_CLUSTER"); fi
    ;;
esac
lines "$OPR_ARGS"
args+=(${list[@]+"${list[@]}"})
lines "$OPR_RESULTS"
if [[ $command == merge || $command == publish || $command == comment ]]; then
  # A workflow that workflow_run triggers comments on what the other run left.
  if [[ ${#list[@]} -eq 0 && $command != comment ]]; then fail "results: name the results folders, one per line"; fi
  args+=(-- ${list[@]+"${list[@]}"})
fi

# Secrets go to the one process that needs them.
secrets=$(mktemp -d "$(temp_folder)/op-readiness-secrets-XXXXXX")
output secrets "$secrets"
trap 'rm -rf "$secrets"' EXIT
kubeconfig=
if [[ $OPR_KUBECONFIG == *$'\n'* || $OPR_KUBECONFIG =~ ^[[:space:]]*\{ || $OPR_KUBECONFIG == *apiVersion:* ]]; then
  kubeconfig=$OPR_KUBECONFIG
  args+=("--kubeconfig=$secrets/kubeconfig")
elif [[ -n $OPR_KUBECONFIG ]]; then
  args+=("--kubeconfig=$OPR_KUBECONFIG")
fi
if [[ $command == comment && -n $OPR_TOKEN ]]; then export GITHUB_TOKEN=$OPR_TOKEN; fi
if [[ $command == run ]]; then
  # By this name the action's last step removes the cluster of a run that was killed.
  OP_READINESS_CLUSTER_RUN=github-${GITHUB_RUN_ID:-0}-${GITHUB_RUN_ATTEMPT:-1}-${secrets##*-}
  export OP_READINESS_CLUSTER_RUN
  output cluster-run "$OP_READINESS_CLUSTER_RUN"
fi
summary=$OPR_SUMMARY
for name in ${!OPR_@}; do unset "$name"; done
# Where op-readiness leaves its annotations: none of what it says is a command.
export OP_READINESS_ANNOTATIONS=$secrets/annotations
# What it says on standard output, where that becomes an output of the step.
said=$secrets/said

# shielded COMMAND... runs a command of which no line is one to the runner, on
# either stream: much of it is the text of others.
shielded() {
  local word code=0
  word=$(od -An -v -N16 -tx1 /dev/urandom | tr -d ' \n')
  if [[ ! $word =~ ^[0-9a-f]{32}$ ]]; then fail "there is no random number from /dev/urandom"; fi
  printf '::stop-commands::%s\n' "$word"
  "$@" || code=$?
  # Also behind a line without an end.
  printf '\n::%s::\n' "$word"
  return "$code"
}

# saying ARGUMENT... runs op-readiness, and keeps what it says on standard output.
saying() {
  local code=0
  "$binary" "$@" >"$said" || code=$?
  cat "$said"
  return "$code"
}

# quietly ARGUMENT... does so without showing it.
quietly() { "$binary" "$@" >"$said"; }

# attend runs op-readiness so that a cancelled job stops it gracefully: the runner
# asks this script only, and the second time for the last time.
attend() {
  local code=0
  "$binary" "$@" &
  local pid=$!
  trap 'kill -TERM "$pid" 2>/dev/null || true' INT TERM
  wait "$pid" || code=$?
  while kill -0 "$pid" 2>/dev/null; do
    code=0
    wait "$pid" || code=$?
  done
  trap - INT TERM
  return "$code"
}

if [[ -n $kubeconfig ]]; then
  shielded quietly mask <<<"$kubeconfig" || exit $?
  cat "$said"
  rm "$said"
  (umask 077 && printf '%s\n' "$kubeconfig" >"$secrets/kubeconfig")
  kubeconfig=
fi

code=0
case $command in
  run)
    shielded attend run "${args[@]}" || code=$?
    ;;
  plan)
    shielded "$binary" plan ${args[@]+"${args[@]}"} || code=$?
    if [[ $code -eq 0 ]]; then
      shielded quietly plan ${args[@]+"${args[@]}"} --output=github-matrix || exit $?
      output matrix "$(cat "$said")"
      if [[ -n $report_dir ]]; then
        mkdir -p "$report_dir"
        shielded quietly plan ${args[@]+"${args[@]}"} --output=json || exit $?
        cp "$said" "$report_dir/plan.json"
      fi
    fi
    ;;
  cluster)
    shielded saying cluster "${args[@]}" || code=$?
    output kubeconfig "$(cat "$said")"
    ;;
  reap)
    shielded "$binary" cluster reap --yes ${args[@]+"${args[@]}"} || code=$?
    ;;
  publish)
    shielded saying publish "${args[@]}" || code=$?
    output url "$(tail -n 1 "$said")"
    ;;
  *)
    shielded "$binary" "$command" ${args[@]+"${args[@]}"} || code=$?
    ;;
esac

if [[ $summary == true && -f $report_dir/run.json ]]; then
  # The runner takes annotations from the log, and the rest is in the summary.
  shielded quietly comment --dry-run --summary --annotate "$report_dir" || echo "::warning title=op-readiness::the job summary could not be written"
fi
if [[ -f $OP_READINESS_ANNOTATIONS ]]; then
  grep -E '^::(error|warning|notice) title=' "$OP_READINESS_ANNOTATIONS" || true
fi
exit "$code"
