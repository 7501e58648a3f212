# Shared by the scripts of action.yml. They keep to bash 3.2, which is what macOS
# has, and to what every runner's bash brings along.
set -euo pipefail

# command_data escapes a text for a workflow command.
command_data() {
  local text=${1//'%'/%25}
  text=${text//$'\r'/%0D}
  printf '%s' "${text//$'\n'/%0A}"
}

# fail ends the step for wrong inputs, as op-readiness does for wrong flags.
fail() {
  printf '::error title=op-readiness::%s\n' "$(command_data "$1")"
  exit 2
}

# output hands a value without newlines on.
output() {
  if [[ $2 == *$'\n'* || $2 == *$'\r'* ]]; then
    fail "$1: it must not hold a line break"
  fi
  printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"
}

# temp_folder prints the runner's temporary folder, with slashes also on Windows.
temp_folder() {
  local folder=${RUNNER_TEMP:-${TMPDIR:-/tmp}}
  printf '%s' "${folder//\\//}"
}
