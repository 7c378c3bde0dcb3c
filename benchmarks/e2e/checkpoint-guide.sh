#!/bin/bash
# The checkpoint commands of benchmarks/README.md, small enough for a laptop: two minutes, at most 1 GiB on the
# disk at a time, 6 GiB written.
#
#   benchmarks/e2e/checkpoint-guide.sh DIR
#
# Each command is printed as it is typed, then what its summary says of checkpoints.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd) tmp=$(mktemp -d)
mkdir -p "${1:?the directory to write in, for example /mnt/nvme}"
dir=$(mktemp -d "$(cd "$1" && pwd)/guide.XXXXXX") # its own: DIR may have somebody's checkpoints
trap 'rm -rf "$tmp" "$dir"' EXIT
bin=${KVBENCH:-$tmp/kvbench.test} # made before, perhaps
[ -x "$bin" ] || (cd "$here" && go test -c -o "$bin" ./benchmarks)

try() { # TITLE BENCH FLAG…
	local title=$1 bench=$2 results=$tmp/results summary
	shift 2
	printf '\n%s\n  $ go test ./benchmarks -run "^$" -bench %s -cache-dir %s\n' "$title" "$bench${*:+ $*}" "$dir"
	rm -rf "$results"
	(cd "$here/benchmarks" && "$bin" -test.run '^$' -test.bench "$bench" "$@" -cache-dir "$dir" \
		-results-dir "$results" -progress none) >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; return 1; }
	find "$results" -name summary.txt -printf '%T@ %p\n' | sort -n | while read -r _ summary; do
		echo "  ${summary#"$results/"}" | sed 's|/trial_0.*||'
		grep -E '^(checkpoint|write|pipeline|read) |recovery' "$summary" | sed 's/^/    /'
	done
}

try 'One file, generated while it is written, and before: the same I/O, other times and memory.' \
	CheckpointStream -stream-size-gb 0.75 -sweep stream-generate=during,before
try 'Through the page cache, with each advice to the kernel: with two of them the reads are warm.' \
	CheckpointStream -stream-size-gb 0.75 -io buffered -sweep fadvise=none,sequential,dontneed
try 'The files of a model on eight accelerators, at 1/256 of their size.' Checkpoint/model=8b
try 'Two runs: the first leaves the files ...' Checkpoint/model=8b -checkpoint-reads 0
try '... and the second one reads them: so long a training run waits for its last checkpoint.' \
	Checkpoint/model=8b -checkpoint-writes 0 -verify full
printf '\n%d s\n' "$SECONDS"
