#!/usr/bin/env bash
# Gets op-readiness for action.yml, in two steps, so that a cache can come between:
#
#   get.sh locate    says where the binary is, or is to be
#   get.sh install   downloads it, or builds it
#
# At a tag (uses: ...@v1, @v1.2.3) it is the release's binary, held against the
# release's checksums; otherwise it is built from the action's own source.
#
# Environment: OPR_REF and OPR_REPOSITORY, the action's own; and for install, what
# locate put out.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/lib.sh"
root=$(cd "$here/../.." && pwd)

# Where another composite action uses this one, GitHub gives that one's reference and
# repository. The runner unpacks actions by theirs: .../_actions/OWNER/NAME/REF.
if [[ $root =~ /_actions/([^/]+/[^/]+)/(.+)$ ]]; then
  OPR_REPOSITORY=${BASH_REMATCH[1]}
  OPR_REF=${BASH_REMATCH[2]}
fi

platform() {
  case ${RUNNER_OS:-} in
    Linux) os=linux ;;
    macOS) os=darwin ;;
    Windows) os=windows ;;
    *) fail "this runner's system is \"${RUNNER_OS:-}\": op-readiness runs on Linux, macOS and Windows" ;;
  esac
  case ${RUNNER_ARCH:-} in
    X64) arch=amd64 ;;
    ARM64) arch=arm64 ;;
    *) fail "this runner's processor is \"${RUNNER_ARCH:-}\": op-readiness runs on X64 and ARM64" ;;
  esac
  suffix=
  if [[ $os == windows ]]; then suffix=.exe; fi
}

sha256() {
  if command -v sha256sum >/dev/null; then
    sha256sum "$@"
  elif command -v shasum >/dev/null; then
    shasum -a 256 "$@"
  else
    openssl dgst -sha256 -r "$@"
  fi
}

# release prints the version whose binary is to be downloaded; nothing where one
# is to be built. A moving tag, such as v1, stands for the version that the
# workflows of its commit name.
release() {
  if [[ ! ${OPR_REF:-} =~ ^v[0-9]+(\.[0-9]+)?(\.[0-9]+)?([-+][0-9A-Za-z.+-]+)?$ ]]; then
    return
  fi
  if [[ $OPR_REF =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]]; then
    printf '%s' "$OPR_REF"
    return
  fi
  local line
  while IFS= read -r line; do
    if [[ $line =~ uses:\ [^@]+/windows-op-readiness@(v[0-9]+\.[0-9]+\.[0-9]+[^[:space:]]*) && ${BASH_REMATCH[1]} == "$OPR_REF".* ]]; then
      printf '%s' "${BASH_REMATCH[1]}"
      return
    fi
  done <"$root/.github/workflows/readiness.yml"
}

# source_digest stands for everything that a build depends on.
source_digest() {
  local files digest
  cd "$root"
  files=$(find . -mindepth 1 \( -name '.*' -o -path ./bin -o -path ./docs -o -path ./test -o -path ./results \) -prune -o -type f ! -name '*_test.go' -print | LC_ALL=C sort)
  digest=$({
    go env GOVERSION
    echo "$files"
    echo "$files" | tr '\n' '\0' | xargs -0 cat
  } | sha256)
  printf '%s' "${digest:0:16}"
}

locate() {
  platform
  local version digest tools
  version=$(release)
  if [[ -z $version ]]; then
    if ! command -v go >/dev/null; then
      fail "there is no Go on this runner to build op-readiness with: add actions/setup-go before this step, or use a release of the action (uses: ...@v1)"
    fi
    digest=$(source_digest)
  fi
  tools=${RUNNER_TOOL_CACHE:-$(temp_folder)}
  tools=${tools//\\//}
  if ! mkdir -p "$tools" 2>/dev/null || [[ ! -w $tools ]]; then
    tools=$(temp_folder)
  fi
  local folder=$tools/op-readiness/${version:-source-$digest}/$arch
  output folder "$folder"
  output binary "$folder/op-readiness$suffix"
  output version "$version"
  if [[ ! -x $folder/op-readiness$suffix && -z $version ]]; then
    output cache-key "op-readiness-$os-$arch-$digest"
  fi
}

# fetch downloads URL to FILE.
fetch() {
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --retry 3 --proto '=https,http' --output "$2" "$1"
  else
    wget --quiet --tries 3 --output-document "$2" "$1"
  fi
}

# download gets the release's binary into FILE. It fails where there is none, and
# ends the step where there is one that is not what the release says.
download() {
  local asset=op-readiness_${OPR_VERSION}_${os}_$arch$suffix sums=$1.checksums server base wanted found
  local servers=("${GITHUB_SERVER_URL:-https://github.com}")
  # On an Enterprise server, actions may come from github.com.
  if [[ ${servers[0]} != https://github.com ]]; then servers+=(https://github.com); fi
  for server in "${servers[@]}"; do
    base=$server/${OPR_REPOSITORY:-windows-op-readiness/windows-op-readiness}/releases/download/$OPR_VERSION
    echo "Downloading $base/$asset"
    if ! fetch "$base/checksums.txt" "$sums" || ! fetch "$base/$asset" "$1"; then
      continue
    fi
    wanted=$(while read -r sum name; do if [[ ${name#\*} == "$asset" ]]; then printf '%s' "$sum"; fi; done <"$sums")
    found=$(sha256 "$1")
    found=${found%% *}
    if [[ ! $wanted =~ ^[0-9a-f]{64}$ || $found != "$wanted" ]]; then
      rm -f "$1" "$sums"
      fail "$base/$asset has the SHA-256 checksum $found, and checksums.txt says \"$wanted\": it is not used. Try again; if it stays so, report it"
    fi
    echo "Its checksum is $found, as the release says"
    return 0
  done
  return 1
}

build() {
  if ! command -v go >/dev/null; then
    fail "op-readiness $OPR_VERSION could not be downloaded, and there is no Go on this runner to build it with: add actions/setup-go before this step"
  fi
  echo "Building op-readiness from the action's source"
  # The caller's workspace and flags are none of its business.
  (cd "$root" && GOWORK=off GOFLAGS='' go build -trimpath -buildvcs=false -o "$1" ./cmd/op-readiness)
}

install() {
  platform
  if [[ ! -x $OPR_BINARY ]]; then
    mkdir -p "$OPR_FOLDER"
    local new
    new=$(mktemp -d "$OPR_FOLDER/new-XXXXXX")
    if [[ -z $OPR_VERSION ]] || ! download "$new/op-readiness$suffix"; then
      build "$new/op-readiness$suffix"
    fi
    chmod 755 "$new/op-readiness$suffix"
    mv -f "$new/op-readiness$suffix" "$OPR_BINARY"
    rm -rf "$new"
  fi
  "$OPR_BINARY" version
  printf '%s\n' "$OPR_FOLDER" >>"$GITHUB_PATH"
}

case ${1:-} in
  locate) locate ;;
  install) install ;;
  *) fail "get.sh: say locate or install" ;;
esac
