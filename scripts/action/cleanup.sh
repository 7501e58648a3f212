#!/usr/bin/env bash
# Removes what run.sh could not remove itself, because it was killed.
# Environment: OPR_SECRETS, the folder that run.sh named; OPR_CLUSTER_RUN, the run whose
# clusters go; OPR_BINARY.
set -euo pipefail
case ${OPR_SECRETS:-} in
  */op-readiness-secrets-*) rm -rf "$OPR_SECRETS" ;;
esac
if [[ -n ${OPR_CLUSTER_RUN:-} && -x ${OPR_BINARY:-} ]]; then
  "$OPR_BINARY" cluster down --run "$OPR_CLUSTER_RUN"
fi
