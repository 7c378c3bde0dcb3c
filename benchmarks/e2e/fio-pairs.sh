#!/bin/bash
# Writes of the suite beside fio, in turns: new files of one size, flushed as each is complete, the
# same number of writers, files and bytes on the same filesystem.
#
#   benchmarks/e2e/fio-pairs.sh DIR [WORKERS [GIB [PAIRS]]]
#
# Before each run, of either, it removes what the one before wrote, flushes, and waits until the
# device has completed no discard for REST seconds: a filesystem mounted discard goes on for seconds
# after a removal, and the suite waits by itself, which fio does not. fio's buffers are huge pages, as
# the suite's are where there are some (/proc/sys/vm/nr_hugepages > 2 per writer; else IOMEM=mmap).
set -eu
dir=$1 workers=${2:-16} gib=${3:-4} pairs=${4:-5} rest=${REST:-5}
here=$(cd "$(dirname "$0")/../.." && pwd) tmp=$(mktemp -d)
trap 'rm -rf "$tmp" "$dir/fio" "$dir/kv"' EXIT
(cd "$here" && go test -c -o "$tmp/kvbench.test" ./benchmarks)

# What the kernel counts of the device's discards (Documentation/block/stat.rst, field 12).
stat=/sys/class/block/$(basename "$(findmnt -no SOURCE -T "$dir")")/stat
discards() { if [ -r "$stat" ]; then awk '{print $12}' "$stat"; fi; }

quiet() {
	rm -rf "$dir/fio" "$dir/kv"; mkdir -p "$dir/fio"; sync
	local before=-1 now
	while now=$(discards) && [ "$now" != "$before" ]; do before=$now; sleep "$rest"; done
}

suite() { # BENCHMARK: bytes per second
	quiet
	(cd "$tmp" && ./kvbench.test -test.run '^$' -test.bench "$1" -test.benchtime 60s -division open \
		-workers "$workers" -storage-capacity-gb $((2 * gib)) -ceiling-size-gb "$gib" \
		-cache-dir "$dir/kv" -results-dir "$tmp/results" -progress none 2>/dev/null) |
		grep -o '[0-9][0-9.e+]* write-B/s' | cut -d' ' -f1
}

fio_writes() { # MiB of a file: bytes per second
	quiet
	fio --name=w --directory="$dir/fio" --rw=write --direct=1 --bs=1m --ioengine=psync \
		--numjobs="$workers" --filesize="$1m" --nrfiles=$((gib * 1024 / $1 / workers)) --openfiles=1 \
		--file_service_type=sequential --create_on_open=1 --fsync_on_close=1 \
		--iomem="${IOMEM:-mmaphuge}" --refill_buffers=1 --group_reporting --output-format=json \
		2>/dev/null | awk -F'[:,]' '/"write" *:/ {w = 1} w && /"bw_bytes"/ {print $2 + 0; exit}'
}

median() { sort -g | awk '{v[NR] = $1} END {print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'; }

compare() { # NAME BENCHMARK MiB
	: >"$tmp/ours" >"$tmp/fio"
	for ((i = 1; i <= pairs; i++)); do
		suite "$2" >"$tmp/one" && fio_writes "$3" >"$tmp/other"
		cat "$tmp/one" >>"$tmp/ours"; cat "$tmp/other" >>"$tmp/fio"
		echo "$1 pair $i: suite $(cat "$tmp/one") B/s, fio $(cat "$tmp/other") B/s"
	done
	echo "$1 medians: $(median <"$tmp/ours") $(median <"$tmp/fio")" |
		awk '{printf "%s %s suite %.3f GB/s, fio %.3f GB/s, ratio %.3f\n", $1, $2, $3/1e9, $4/1e9, $3/$4}'
}

case ${ONLY:-both} in
ceiling | both) compare ceiling '^BenchmarkStorageCeiling/op=write$' $((gib * 1024 / 4 / workers > 64 ? 64 : gib * 1024 / 4 / workers)) ;;&
tier | both) compare tier '^BenchmarkTier/tier=storage/op=write/size=16MiB$' 16 ;;
esac
