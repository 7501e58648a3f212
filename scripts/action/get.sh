#!/usr/bin/env bash
# Gets op-readiness for action.yml, in two steps, so that a cache can come between:
#
#   get.sh locate    says where the binary is, or is to be
#   get.sh install   downloads it, or builds it
#
# At a tag (uses: ...@v1, @v1.2.3) it is the release's binary, and has the checksum
# that the release's source says; otherwise it is built from the action's own source.
# It lies in the runner's temporary folder, which is the job's own: what other jobs
# left on a runner is never run.
#
# Environment: OPR_REF and OPR_REPOSITORY, the action's own; and for install, what
# locate put out.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/lib.sh"
root=$(cd "$here/../.." && pwd)
ours=windows-op-readiness/windows-op-readiness

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
  local version digest
  version=$(release)
  if [[ -z $version ]]; then
    if ! command -v go >/dev/null; then
      fail "there is no Go on this runner to build op-readiness with: add actions/setup-go before this step, or use a release of the action (uses: ...@v1)"
    fi
    digest=$(source_digest)
  fi
  if [[ -z ${RUNNER_TEMP:-} ]]; then fail "RUNNER_TEMP is not set: this action runs where a runner of GitHub Actions starts it"; fi
  local folder
  folder=$(temp_folder)/op-readiness-${version:-source-$digest}-$arch
  output folder "$folder"
  output binary "$folder/op-readiness$suffix"
  output version "$version"
  if [[ ! -x $folder/op-readiness$suffix && -z $version ]]; then
    output cache-key "op-readiness-$os-$arch-$digest"
  fi
}

# pinned prints the checksum that the action's source says of an asset; nothing
# where it says none.
pinned() {
  local sum name
  if [[ ! -f $here/checksums.txt ]]; then return; fi
  while read -r sum name; do
    if [[ $name == "$1" && $sum =~ ^[0-9a-f]{64}$ ]]; then printf '%s' "$sum"; fi
  done <"$here/checksums.txt"
}

# checked WANTED FILE reports whether a file has a checksum.
checked() {
  local found
  found=$(sha256 "$2")
  [[ ${found%% *} == "$1" ]]
}

# download gets the release's binary into FILE. It fails where there is none to be
# had, and ends the step where it is not what the action's source says.
download() {
  local asset=$1 wanted=$2 file=$3 url
  local release=/releases/download/$OPR_VERSION/$asset
  local urls=("${GITHUB_SERVER_URL:-https://github.com}/${OPR_REPOSITORY:-$ours}$release")
  # On an Enterprise server, actions may come from github.com.
  if [[ ${urls[0]} != "https://github.com/$ours$release" ]]; then urls+=("https://github.com/$ours$release"); fi
  for url in "${urls[@]}"; do
    echo "Downloading $url"
    if ! curl --fail --silent --show-error --location --retry 3 --proto '=https' --proto-redir '=https' --output "$file" "$url"; then
      continue
    fi
    if ! checked "$wanted" "$file"; then
      rm -f "$file"
      fail "$url has another checksum than $wanted, which the source of the action says: it is not used. Try again; if it stays so, report it"
    fi
    echo "Its checksum is $wanted, as the source of the action says"
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
  local asset=op-readiness_${OPR_VERSION}_${os}_$arch$suffix wanted=
  if [[ -n $OPR_VERSION ]]; then wanted=$(pinned "$asset"); fi
  # An earlier step of the job may have got it.
  if [[ ! -x $OPR_BINARY ]] || { [[ -n $wanted ]] && ! checked "$wanted" "$OPR_BINARY"; }; then
    mkdir -p "$OPR_FOLDER"
    local new
    new=$(mktemp -d "$OPR_FOLDER/new-XXXXXX")
    if [[ -z $wanted ]] || ! download "$asset" "$wanted" "$new/op-readiness$suffix"; then
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
