#!/usr/bin/env bash
# The parts of a release, as .github/workflows/release.yml puts them together.
#
#   release.sh build VERSION DIR [OS/ARCH...]   builds the commit here into DIR, with checksums.txt
#   release.sh commit VERSION CHECKSUMS         makes the release's commit and tag, here only
#   release.sh major VERSION                    prints the tag that moves along, v1 for v1.2.3; nothing for v1.2.3-rc.1
#
# On main, the reusable workflows name the action by that branch. In the commit of
# a release, the only one that is tagged, they name it by the version, so whoever
# calls a workflow of v1.2.3 runs the action of v1.2.3; and the action has the
# checksums of its binaries, which are built of the commit's parent. That commit has
# its parent's time, and is the same wherever it is made, and so are the binaries.
set -euo pipefail

platforms=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64)
workflows=(.github/workflows/readiness.yml .github/workflows/comment.yml .github/workflows/reap.yml)
action=windows-op-readiness/windows-op-readiness
pinned=scripts/action/checksums.txt

fail() {
	echo "release.sh: $*" >&2
	exit 2
}

check_version() {
	if [[ ! ${1:-} =~ ^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z]+(\.[0-9A-Za-z]+)*)?$ ]]; then
		fail "\"${1:-}\" is not a version: write it as v1.2.3 or v1.2.3-rc.1"
	fi
}

commit() {
	local version=$1 checksums=$2 file date
	check_version "$version"
	clean
	if [[ -z $checksums ]] || grep -qvE "^[0-9a-f]{64}  op-readiness_${version}_[a-z0-9_.]+\$" "$checksums"; then
		fail "\"$checksums\" is not the checksums.txt that 'release.sh build $version' makes"
	fi
	cat "$checksums" >"$pinned"
	for file in "${workflows[@]}"; do
		if ! grep -q "uses: $action@main\$" "$file"; then
			fail "$file does not name the action by main: a release is made of main"
		fi
		sed "s|uses: $action@main\$|uses: $action@$version|" "$file" >"$file.new"
		cat "$file.new" >"$file"
		rm "$file.new"
	done
	date=$(git show -s --format=%cI HEAD)
	export GIT_AUTHOR_NAME="windows-op-readiness" GIT_AUTHOR_EMAIL="release@windows-op-readiness.invalid" GIT_AUTHOR_DATE=$date
	export GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL GIT_COMMITTER_DATE=$date
	git add -- "$pinned"
	git -c commit.gpgSign=false commit --quiet --message "Release $version" -- "${workflows[@]}" "$pinned"
	git -c tag.gpgSign=false tag "$version"
	git rev-parse HEAD
}

clean() {
	if [[ -n $(git status --porcelain) ]]; then
		fail "there are changes that are not committed: commit them, or remove them"
	fi
}

sha256() {
	if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi
}

build() {
	local version=$1 dir=$2 name os arch platform
	check_version "$version"
	shift 2
	if [[ -z $dir ]]; then fail "build: into which folder?"; fi
	if [[ $# -eq 0 ]]; then set -- "${platforms[@]}"; fi
	clean
	mkdir -p "$dir"
	for platform in "$@"; do
		os=${platform%/*} arch=${platform#*/}
		name=op-readiness_${version}_${os}_$arch
		if [[ $os == windows ]]; then name+=.exe; fi
		echo "Building $name" >&2
		# What the environment says about building must not matter.
		env -u GOEXPERIMENT -u GOAMD64 -u GOARM64 GOFLAGS= GOWORK=off GOENV=off GOTOOLCHAIN=local CGO_ENABLED=0 \
			GOPROXY="$(go env GOPROXY)" GONOSUMDB="$(go env GONOSUMDB)" GOSUMDB="$(go env GOSUMDB)" GOOS="$os" GOARCH="$arch" \
			go build -mod=readonly -trimpath -buildvcs=true -ldflags="-s -w -X github.com/$action/internal/cli.released=$version" -o "$dir/$name" ./cmd/op-readiness
	done
	(cd "$dir" && sha256 op-readiness_* >checksums.txt)
}

major() {
	check_version "$1"
	if [[ $1 != *-* ]]; then echo "${1%%.*}"; fi
}

cd "$(dirname "$0")/.."
case ${1:-} in
	build) build "${2:-}" "${3:-}" "${@:4}" ;;
	commit) commit "${2:-}" "${3:-}" ;;
	major) major "${2:-}" ;;
	*) fail "say commit, build or major" ;;
esac
