#!/usr/bin/env bash
# Runs the examples of README.md and benchmarks/measurements again and puts what they print into the fenced blocks:
#
#	testdata/readme-sample.sh [sample] [compare] [fio]
#
# Without arguments all three, in some five minutes, on a machine that does nothing else. They need 18 GiB of /var/tmp;
# compare also root and 6 GiB of memory for a tmpfs, fio also fio, and root for its huge pages.
set -euo pipefail
cd "$(dirname "$0")/.."

memory=/mnt/memory
results=/dev/shm/kvbench-results
work=$(mktemp -d)
pages=$(sysctl -n vm.nr_hugepages)
clean() {
	! mountpoint -q "$memory" || { umount "$memory" && rmdir "$memory"; }
	rm -rf "$work" "$results" /var/tmp/kv-fio kvbench.txt
	[ "$(sysctl -n vm.nr_hugepages)" = "$pages" ] || sysctl -q -w vm.nr_hugepages="$pages"
}
trap clean EXIT

# show prints a command as a person types it, and runs it.
show() {
	printf '$ %s\n' "$1"
	bash -c "$1"
}

# put PAGE BLOCK FILE replaces the lines of the fenced block ```BLOCK in PAGE.
put() {
	awk -v fence='```'"$2" -v file="$3" '
		$0 == fence { print; while ((getline line < file) > 0) print line; inside = 1; found = 1; next }
		inside && /^```$/ { inside = 0 }
		!inside { print }
		END { exit !found }
	' "$1" >"$work/page"
	cat "$work/page" >"$1"
}

sample() {
	show "go test ./benchmarks -run '^\$' -bench 'StorageCeiling|MaxStorageStress' -benchtime 20s -division open -num-users 16 -storage-capacity-gb 8 -cache-dir /var/tmp/kv -summary long -results-dir $results" >"$work/sample"
	awk '/^PASS$/ { exit } /^Benchmark/ { left_out = !/op=read|MaxStorageStress/ } !/^Unit / && !left_out' "$work/sample" >"$work/lines"
	sed -n '/^MaxStorageStress (option 1)/,/^quote/{/^quote/d; p}' "$work/sample" >"$work/summary"
	put benchmarks/measurements/example.md benchmark-output "$work/lines"
	put benchmarks/measurements/example.md summary-output "$work/summary"
	excerpt >"$work/excerpt"
	put README.md output "$work/excerpt"
}

# excerpt is what the first page shows of the sample: some units of the line, some lines of the summary.
excerpt() {
	sed -n '1s/ -results-dir .*//p' "$work/sample"
	echo …
	awk -F'\t' '/^BenchmarkMaxStorageStress/ {
		gsub(/ /, "", $1); gsub(/ /, "", $2)
		for (i = 3; i <= NF; i++) { split($i, v, " "); at[v[2]] = v[1] " " v[2] }
		printf "%s   %s   %s   %s   %s   %s\n", $1, $2, at["ns/op"], at["read-B/s"], at["write-B/s"], at["read-p50-ns"]
		printf "%30s%s   %s   %s   %s   …\n", "", at["hit-ratio"], at["ceiling-ratio"], at["cpu-ns/B"], at["device-read-ratio"]
	}' "$work/sample"
	local line
	for line in '^verdict' '^cache|of the offered load was served' '^kernel'; do
		echo …
		grep -E "$line" "$work/summary"
	done
}

compare() {
	local run="go test ./benchmarks -run '^\$' -bench Synthetic -benchtime 5s -count 6 -division open -model tiny-1b -num-users 16 -request-rate 200 -storage-capacity-gb 4 -results-dir $results"
	{
		show "mount --mkdir -t tmpfs -o size=6g tmpfs $memory"
		printf '$ %s\n' "$run -cache-dir /var/tmp/kv > disk.txt"
		bash -c "$run -cache-dir /var/tmp/kv" >"$work/disk.txt"
		printf '$ %s\n' "$run -cache-dir $memory/kv > memory.txt"
		bash -c "$run -cache-dir $memory/kv" >"$work/memory.txt"
		printf '$ %s\n' "go tool benchstat -filter '.unit:(read-B/s OR write-B/s OR read-p95-ns OR cpu-ns/B)' disk.txt memory.txt"
		go tool benchstat -filter '.unit:(read-B/s OR write-B/s OR read-p95-ns OR cpu-ns/B)' disk.txt="$work/disk.txt" memory.txt="$work/memory.txt"
	} >"$work/compare"
	put benchmarks/measurements/example.md benchstat-output "$work/compare"
}

fio_compare() {
	local fio="fio --name=read --directory=/var/tmp/kv-fio --rw=read --bs=1m --size=512m --numjobs=16 --direct=1 --ioengine=psync --time_based --runtime=20 --group_reporting"
	mkdir -p /var/tmp/kv-fio
	$fio --create_only=1 >/dev/null
	{
		show "$fio | grep READ"
		show "sysctl vm.nr_hugepages=64"
		show "$fio --iomem=mmaphuge | grep READ"
		show "go test ./benchmarks -run '^\$' -bench 'StorageCeiling/op=read|DecodeOnly' -benchtime 20s -division open -model tiny-1b -num-users 16 -request-rate 200 -storage-capacity-gb 8 -cache-dir /var/tmp/kv -results-dir $results > kvbench.txt"
		show "go tool benchstat -filter .unit:read-B/s kvbench.txt"
	} | sed -E 's/, [0-9.]+MiB\/s-.*io=/, io=/' >"$work/fio"
	put benchmarks/measurements/plain-io.md fio-output "$work/fio"
}

[ $# -gt 0 ] || set -- sample compare fio
for part in "$@"; do
	case $part in
	sample | compare) "$part" ;;
	fio) fio_compare ;;
	*) echo "no such part: $part" >&2; exit 2 ;;
	esac
done
