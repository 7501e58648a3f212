#!/usr/bin/env bash
# Runs one command of op-readiness for action.yml. The inputs are in OPR_*; none of
# them is ever read as code.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/lib.sh"

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
  run | plan | preflight | merge | publish | comment | cluster) ;;
  *) fail "command: \"$command\" is not known: choose of run, plan, preflight, merge, publish, comment, cluster" ;;
esac
only kubeconfig "$OPR_KUBECONFIG" run preflight
only categories "$OPR_CATEGORIES" run plan
only shard "$OPR_SHARD" run
only shards "$OPR_SHARDS" plan
only kubernetes-version "$OPR_KUBERNETES_VERSION" run plan cluster
only provider "$OPR_PROVIDER" run plan preflight
only cluster "$OPR_CLUSTER" run cluster
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
    if [[ -z $OPR_CLUSTER ]]; then fail "cluster: which one is to be made? Say kwok"; fi
    args=(up "$OPR_CLUSTER" ${args[@]+"${args[@]}"})
    ;;
  run)
    if [[ -n $OPR_CLUSTER ]]; then args+=("--cluster=$OPR_CLUSTER"); fi
    ;;
esac
lines "$OPR_ARGS"
args+=(${list[@]+"${list[@]}"})
lines "$OPR_RESULTS"
if [[ $command == merge || $command == publish || $command == comment ]]; then
  # A workflow that workflow_run triggers comments on what the other run left.
  if [[ ${#list[@]} -eq 0 && $command != comment ]]; then fail "results: name the results folders, one a line"; fi
  args+=(-- ${list[@]+"${list[@]}"})
fi

# Secrets go to the one process that needs them.
secrets=$(mktemp -d "$(temp_folder)/op-readiness-secrets-XXXXXX")
output secrets "$secrets"
trap 'rm -rf "$secrets"' EXIT
if [[ -n $OPR_KUBECONFIG ]]; then
  if [[ $OPR_KUBECONFIG == *$'\n'* || $OPR_KUBECONFIG =~ ^[[:space:]]*\{ || $OPR_KUBECONFIG == *apiVersion:* ]]; then
    bash "$here/mask.sh" <<<"$OPR_KUBECONFIG"
    (umask 077 && printf '%s\n' "$OPR_KUBECONFIG" >"$secrets/kubeconfig")
    args+=("--kubeconfig=$secrets/kubeconfig")
  else
    args+=("--kubeconfig=$OPR_KUBECONFIG")
  fi
fi
if [[ $command == comment && -n $OPR_TOKEN ]]; then export GITHUB_TOKEN=$OPR_TOKEN; fi
summary=$OPR_SUMMARY
for name in ${!OPR_@}; do unset "$name"; done

# untrusted shows what may hold lines of somebody else: none is a command to the
# runner, but those that come first, which are ours.
untrusted() {
  local line word=stop-$RANDOM$RANDOM$RANDOM$RANDOM
  local first=1
  while IFS= read -r line || [[ -n $line ]]; do
    if [[ -n $first && $line != ::* ]]; then
      first=
      printf '::stop-commands::%s\n' "$word"
    fi
    printf '%s\n' "$line"
  done
  if [[ -z $first ]]; then printf '::%s::\n' "$word"; fi
}

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

code=0
case $command in
  run)
    attend run "${args[@]}" || code=$?
    ;;
  plan)
    "$binary" plan ${args[@]+"${args[@]}"} || code=$?
    if [[ $code -eq 0 ]]; then
      output matrix "$("$binary" plan ${args[@]+"${args[@]}"} --output=github-matrix)"
      if [[ -n $report_dir ]]; then
        mkdir -p "$report_dir"
        "$binary" plan ${args[@]+"${args[@]}"} --output=json >"$report_dir/plan.json"
      fi
    fi
    ;;
  cluster)
    kubeconfig=$("$binary" cluster "${args[@]}") || code=$?
    echo "$kubeconfig"
    output kubeconfig "$kubeconfig"
    ;;
  publish)
    url=$("$binary" publish "${args[@]}") || code=$?
    echo "$url"
    output url "${url##*$'\n'}"
    ;;
  comment)
    "$binary" comment "${args[@]}" | untrusted || code=$?
    ;;
  *)
    "$binary" "$command" ${args[@]+"${args[@]}"} || code=$?
    ;;
esac

if [[ $summary == true && -f $report_dir/run.json ]]; then
  # The runner takes annotations from the log, and the rest is in the summary.
  "$binary" comment --dry-run --summary --annotate "$report_dir" | while IFS= read -r line; do
    if [[ $line != ::* ]]; then
      cat >/dev/null
      break
    fi
    printf '%s\n' "$line"
  done || echo "::warning title=op-readiness::the job summary could not be written"
fi
exit "$code"
