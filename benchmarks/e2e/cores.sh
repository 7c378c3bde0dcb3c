#!/bin/bash
# How the suite's rates grow with the processors, next to fio's and to what Go can do, on a filesystem in
# memory. Nothing else may run on the machine: CPU time is that of the whole machine (/proc/stat), because
# fio does not count its io-wq threads.
#
#   benchmarks/e2e/cores.sh DIR                        # a tmpfs; takes up to 6 minutes
#   BINARY=dist/linux-amd64/kvbench.test SPIKE=spike benchmarks/e2e/cores.sh DIR    # without Go
#
# Reads of SIZES KiB (4 64 1024) by WORKERS (1 2 4 8 16 64 … the number of processors). Each cell of the
# table is thousands of requests per second, and the processors that were busy. The columns:
#
#   suite   -io-engine uring and psync. BlockIO/op=read; from 1 MiB on StorageCeiling/op=read
#   fio     io_uring (fixed buffers, registered files) and psync: a job for each worker, random places of
#           the files that the suite has just read
#   spike   the same reads in Go with nothing around them (../measurements/request-path.go.txt): a ring
#           for each worker, and goroutines that call pread. SPIKE=path, or it is built where there is go
#
# With io_uring a worker has DEPTH (32) requests in flight, from 1 MiB on 1. With psync it has PSYNC (1);
# more would be more threads than workers. The ratios are of the better engine of each side. *growth* is the suite's
# rate ÷ its rate with the first number of workers. Nothing is verified: plain I/O has nothing to compare.
#
# The order is reversed from round to round, each figure is the median of the rounds: PAIRS of them, or as
# many as fit into 4.5 minutes, at least one. A window has SECS (0.5).
#
# The last lines compare MLPerf's option 1 (200 users, USERS) with StorageCeiling/op=mixed of the same
# shares of reads and writes, without verification and with all bytes compared. MODEL is llama3.1-8b where
# DIR has 40 GiB for it, else tiny-1b.
#
# The files of the reads take GIB (2, or a quarter of what is free). fio's buffers are as IOMEM has them
# (mmap; mmaphuge needs /proc/sys/vm/nr_hugepages).
set -eu
export IOMEM=${IOMEM:-mmap} LC_ALL=C
secs=${SECS:-0.5} depth=${DEPTH:-32} psync=${PSYNC:-1} users=${USERS:-200}
. "$(dirname "$0")/pairs.sh"
room() { # MiB that DIR and the memory have
	echo "$(df --output=avail -m "$dir" | tail -1) $(awk '/^MemAvailable/ {print int($2 / 1024 * 0.9)}' /proc/meminfo)" |
		awk '{print ($1 < $2 ? $1 : $2)}'
}
gib=${GIB:-$(room | awk '{print ($1 > 8192 ? 2 : $1 / 4096)}')}
all=$(nproc) numbers=${WORKERS:-}
if [ -z "$numbers" ]; then
	for ((n = 1; n < all; n *= n < 16 ? 2 : 4)); do numbers+="$n "; done
	numbers+=$all
fi
if [ -z "${SPIKE:-}" ] && command -v go >/dev/null; then
	SPIKE=$tmp/spike
	echo "{\"Replace\": {\"$here/tools/spike/main.go\": \"$here/benchmarks/measurements/request-path.go.txt\"}}" >"$tmp/overlay"
	(cd "$here" && CGO_ENABLED=0 go build -overlay "$tmp/overlay" -o "$SPIKE" ./tools/spike)
fi
mkfifo "$tmp/never"
exec 3<>"$tmp/never"

watched() { # COMMAND...: runs it; $tmp/stat has the time and what all processors have done until then
	"$@" &
	local pid=$! u n s i w q t
	while kill -0 $pid 2>/dev/null; do
		read -r _ u n s i w q t _ </proc/stat
		echo "$EPOCHREALTIME $((u + n + s + q + t))"
		read -rt 0.02 <&3 || : # a pause without a process
	done >"$tmp/stat"
	wait $pid
}

busy() { # SECOND LENGTH: how many processors were busy in the middle of this window
	awk -v from="$1" -v long="$2" -v hz="$(getconf CLK_TCK)" '
		$1 >= from + long / 10 && !a {a = $1; b = $2}
		$1 <= from + long * 0.9 {c = $1; d = $2}
		END {print (c > a ? (d - b) / hz / (c - a) : 0)}' "$tmp/stat"
}

run_suite() { # KiB WORKERS uring|psync
	local d=$3 unit=io/s name="^BenchmarkBlockIO\$/op=read/size=$1KiB\$"
	case $3 in uring) d=$deep ;; psync) d=$psync ;; esac
	if (($1 >= 1024)); then unit=read-B/s name='^BenchmarkStorageCeiling$/op=read$'; fi
	rm -rf "$tmp/results"
	flags="-test.bench $name -test.benchtime ${secs}s -io-engine $3 -io-depth $d -workers $2 \
		-storage-capacity-gb $(awk "BEGIN {print 2 * $gib}") -ceiling-size-gb $gib -keep-files"
	watched suite "$unit" >"$tmp/rate"
	local json
	json=$(find "$tmp/results" -name '*.json' | head -1)
	busy "$(date -d "$(grep -om1 '"start_time": *"[^"]*' "$json" | cut -d'"' -f4)" +%s.%N)" "$secs" >"$tmp/cores"
	if (($1 >= 1024)); then awk '{print $1 / 1048576}' "$tmp/rate" >"$tmp/in" && mv "$tmp/in" "$tmp/rate"; fi
}

run_fio() { # likewise
	case $3 in
	uring) watched fio_places "$1" $deep "$2" io_uring --fixedbufs=1 --registerfiles=1 ;;
	psync) watched fio_places "$1" 1 $(($2 * psync)) psync ;;
	esac
	field read iops >"$tmp/rate"
	busy "$(awk -F'[:,]' -v s="$secs" '/"timestamp_ms"/ {printf "%.3f", $2 / 1000 - s}' "$tmp/json")" "$secs" >"$tmp/cores"
}

run_spike() { # likewise
	local d=$psync mode=psync
	if [ "$3" = uring ]; then d=$deep mode=ring; fi
	find "$dir/kv" -type f -size +1M | (ulimit -n "$(ulimit -Hn)"; watched xargs "$SPIKE" -mode $mode \
		-workers "$2" -depth $d -bs $(($1 * 1024)) -sec "$secs") >"$tmp/out"
	sed 's/.*: \([0-9]*\) chunk.*/\1/' "$tmp/out" >"$tmp/rate"
	busy "$(sed 's/.*from \([0-9.]*\):.*/\1/' "$tmp/out")" "$secs" >"$tmp/cores"
}

deep=$depth sides="suite-uring fio-uring spike-uring suite-psync fio-psync spike-psync"
if [ -z "${SPIKE:-}" ]; then sides="suite-uring fio-uring suite-psync fio-psync"; fi
backwards=$(echo "$sides" | tr ' ' '\n' | tac | paste -sd' ')
run_suite 4 1 uring # for files that fio can read, and not counted
for ((i = 0, began = SECONDS; i < ${PAIRS:-9}; i++)); do
	if [ -z "${PAIRS:-}" ] && ((i > 0 && (SECONDS - began) * (i + 1) / i > 270)); then break; fi
	for k in ${SIZES:-4 64 1024}; do
		deep=$((k < 1024 ? depth : 1))
		for n in $numbers; do
			for side in $( ((i % 2)) && echo "$backwards" || echo "$sides"); do
				"run_${side%-*}" "$k" "$n" "${side#*-}"
				paste -d' ' "$tmp/rate" "$tmp/cores" >>"$tmp/$k-$n-$side"
			done
		done
	done
done

echo "$(uname -r), $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2), $all processors, $(fio --version), $(stat -fc %T "$dir"), $i rounds of $secs s"
echo
echo "| KiB | workers | suite uring: k/s, cores | suite psync | fio io_uring | fio psync | spike ring | spike pread | suite ÷ fio | suite ÷ spike | growth |"
echo "|---|---|---|---|---|---|---|---|---|---|---|"
for k in ${SIZES:-4 64 1024}; do for n in $numbers; do
	for side in suite-uring suite-psync fio-uring fio-psync spike-uring spike-psync; do
		if [ -e "$tmp/$k-$n-$side" ]; then
			cut -d' ' -f1 "$tmp/$k-$n-$side" | median
			cut -d' ' -f2 "$tmp/$k-$n-$side" | median
		else echo 0 0; fi
	done | paste -sd' ' | sed "s/^/$k $n /"
done; done | awk '
	function more(a, b) {return a > b ? a : b}
	function ratio(a, b) {return b ? sprintf("%.2f", a / b) : "–"}
	function cell(i) {return $i ? sprintf("%.1f, %.2f", $i / 1000, $(i + 1)) : "–"}
	{
		best = more($3, $5)
		if ($1 != size) {size = $1; first = best}
		printf "| %d | %d | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", $1, $2, cell(3), cell(5), cell(7),
			cell(9), cell(11), cell(13), ratio(best, more($7, $9)), ratio(best, more($11, $13)), ratio(best, first)
	}'

if ((users == 0)); then exit; fi
rm -rf "$dir/kv"
capacity=$(room | awk '{printf "%.1f", $1 / 1024 * 0.8}')
model=${MODEL:-$(awk "BEGIN {print ($capacity < 40 ? \"tiny-1b\" : \"llama3.1-8b\")}")}
for verify in none full; do
	flags="-test.bench ^BenchmarkMaxStorageStress\$ -test.benchtime 5s -num-users $users -model $model \
		-verify $verify -storage-capacity-gb $capacity" suite read-B/s write-B/s >"$tmp/$verify"
done
share=$(awk '{print $1 / ($1 + $2)}' "$tmp/none")
flags="-test.bench ^BenchmarkStorageCeiling\$/op=mixed\$ -test.benchtime 5s -read-share $share \
	-storage-capacity-gb $capacity" suite read-B/s write-B/s >"$tmp/mixed"
echo
for verify in none full; do
	paste -d' ' "$tmp/$verify" "$tmp/mixed" | awk -v what="option 1, $users users of $model, $capacity GiB, -verify $verify" '{
		printf "%s: %.2f GB/s read, %.2f written, %.2f of the ceiling (%.2f and %.2f)\n", what,
			$1 / 1e9, $2 / 1e9, ($1 + $2) / ($3 + $4), $3 / 1e9, $4 / 1e9}'
done
