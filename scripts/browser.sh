#!/usr/bin/env bash
# Gets the browser in which the page of 'testgrid preview' is tested: Debian's
# package chromium, as root on Debian. Elsewhere it says what is missing, and
# the tests of the page in a browser are skipped.
set -eu -o pipefail

for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do
  if command -v "$name" >/dev/null; then
    exit 0
  fi
done
if [[ $(id -u) -eq 0 ]] && grep -qx 'ID=debian' /etc/os-release 2>/dev/null; then
  echo "Installing Debian's package chromium, for the tests in a browser" >&2
  if { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium; } >/dev/null; then
    exit 0
  fi
fi
echo "No chromium in PATH: the tests in a browser are skipped. Install Chromium or Chrome to run them" >&2
