#!/usr/bin/env bash
# Removes what run.sh could not remove itself, because it was killed.
# Environment: OPR_SECRETS, the folder that run.sh named.
set -euo pipefail
case ${OPR_SECRETS:-} in
  */op-readiness-secrets-*) rm -rf "$OPR_SECRETS" ;;
esac
