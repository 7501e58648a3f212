#!/usr/bin/env bash
# Reads a kubeconfig, as YAML or JSON, and asks the runner to mask in all logs what
# is secret in it: the values of fields that hold secrets, and every long word, as
# keys, certificates and tokens are. Addresses and paths stay readable.
set -euo pipefail
shopt -s nocasematch

mask() {
  printf '::add-mask::%s\n' "${1//'%'/%25}"
}

blank=$' \t\r"\''

# bare takes blanks and quotes off both ends of a text.
bare() {
  bared=$1
  while [[ $bared == [$blank]* ]]; do bared=${bared:1}; done
  while [[ $bared == *[$blank] ]]; do bared=${bared%?}; done
}

secret='(token|password|secret|data|passphrase|value)$'
argument='^-.*(token|password|secret)[^=]*=(.+)$'
while IFS= read -r line || [[ -n $line ]]; do
  # Also taken apart: JSON has many fields on a line.
  line+=$'\n'${line//[][\{\},]/$'\n'}
  while IFS= read -r field; do
    if [[ $field == *:* ]]; then
      bare "${field%%:*}"
      key=$bared
      bare "${field#*:}"
      if [[ $key =~ $secret && ${#bared} -ge 4 ]]; then mask "$bared"; fi
    fi
    read -ra words <<<"$field"
    for word in ${words[@]+"${words[@]}"}; do
      bare "$word"
      if [[ $bared =~ $argument ]]; then
        mask "${BASH_REMATCH[2]}"
      elif [[ ${#bared} -ge 32 && $bared != [/.~]* && $bared != *:* ]]; then
        mask "$bared"
      fi
    done
  done <<<"$line"
done
