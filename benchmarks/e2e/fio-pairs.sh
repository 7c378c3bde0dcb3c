#!/bin/bash
# The suite beside fio, in turns, on the same filesystem.
#
#   benchmarks/e2e/fio-pairs.sh DIR [WORKERS [GIB [PAIRS]]]
#   ONLY=blocks benchmarks/e2e/fio-pairs.sh DIR
#   ONLY=ceiling|tier|reads|cores benchmarks/e2e/fio-pairs.sh DIR [WORKERS [GIB [PAIRS]]]
#
# Writes: new files, flushed as each is complete, the same number of writers and files, nearly as
# many bytes. Before each run, of either, it removes what the one before wrote, flushes, and waits
# until the device has completed no discard for REST seconds: a filesystem mounted discard goes on
# for seconds after a removal, and the suite waits by itself, which fio does not. The suite's writers
# are out of step, as those of a long run are, so each of fio's has files of another size, 7/8 to 9/8
# of the suite's: in step, fio's flushes of many files became one of the device's. All files have
# their blocks before they are written (preallocated, --fallocate), fio's before its clock runs.
#
# ONLY=blocks: random reads of SIZES KiB at DEPTHS, PAIRS of SECS seconds each, on one processor
# (CPU): requests per second, processor time of each, and the ratios of the medians. fio has
# io_uring with fixed buffers and registered files, the suite its io_uring. fio reads the files that
# the suite has just written and read, which are new ones for each pair: on a loop device over
# memory fio alone has 63 to 96 thousand requests/s of 64 KiB by where in memory its file lies. A
# loop device has a worker in the kernel, which moves between cores: rates with one in flight differ
# fourfold by where it runs. /sys/devices/virtual/workqueue/cpumask (1: the first core alone) keeps
# it in place.
#
# ONLY=reads: whole files of 64 MiB in requests of 1 MiB, one of each worker in flight, SECS seconds
# each.
#
# Of reads and writes: the suite's engine of choice beside fio's psync and io_uring (one job a worker
# in both, fixed buffers); bytes per second, processor time in ns per byte. The order goes round with
# the turns. fio makes what it writes meanwhile, as op=write of Tier does; with REFILL=0 it has the
# bytes ready, as StorageCeiling has, which stamps each block of them.
#
# ONLY=cores: such reads, and the writes above in files of 64 MiB, on one processor and on two.
#
# fio's buffers are huge pages, as the suite's are where there are some (/proc/sys/vm/nr_hugepages >
# 2 per writer; else IOMEM=mmap).
set -eu
workers=${2:-16} gib=${3:-4} pairs=${PAIRS:-${4:-5}} rest=${REST:-5}
. "$(dirname "$0")/pairs.sh"
mkdir -p "$dir/fio"

# What the kernel counts of the device's discards (Documentation/block/stat.rst, field 12).
stat=/sys/class/block/$(basename "$(findmnt -no SOURCE -T "$dir")")/stat
discards() { if [ -r "$stat" ]; then awk '{print $12}' "$stat"; fi; }

# drained waits until the device has nothing left to discard.
drained() {
	sync
	local before=-1 now
	while now=$(discards) && [ "$now" != "$before" ]; do before=$now; sleep "$rest"; done
}

quiet() { rm -rf "$dir/fio" "$dir/kv"; mkdir -p "$dir/fio"; drained; }

per_byte() { # read|write: bytes per second, processor time in ns per byte
	echo "$(field "$1" bw_bytes) $(field jobname usr_cpu) $(field jobname sys_cpu) $(field jobname job_runtime) $(field "$1" io_bytes)" |
		awk '{print $1, ($2 + $3) / 100 * $4 * 1e6 / $5}'
}

suite_writes() { # BENCHMARK: bytes per second, processor time in ns per byte
	quiet
	flags="-test.bench $1 -test.benchtime 60s -workers $workers -storage-capacity-gb $((2 * gib)) \
		-ceiling-size-gb $gib" suite write-B/s cpu-ns/B
}

fio_writes() { # MiB of a file, ENGINE OPTION...: likewise
	local i jobs=()
	quiet
	for ((i = 0; i < workers; i++)); do # 7/8 to 9/8 of it
		jobs+=(--name="j$i" --filesize=$(($1 - $1 / 8 + ((2 * i + 1) * ($1 / 4) + workers) / (2 * workers)))m)
		jobs+=(--nrfiles=$((gib * 1024 / $1 / workers)))
	done
	fio_json --directory="$dir/fio" --rw=write --bs=1m --ioengine="${@:2}" --openfiles=1 \
		--file_service_type=sequential --fallocate=native --fsync_on_close=1 \
		--refill_buffers="${REFILL:-1}" "${jobs[@]}" || return 1
	per_byte write
}

suite_blocks() { # KiB DEPTH: requests per second, ns of the processor for each
	flags="-test.bench ^BenchmarkBlockIO\$/op=read/size=$1KiB\$ -test.benchtime ${secs}s -io-engine uring \
		-io-depth $2 -storage-capacity-gb 1 -ceiling-size-gb 0.5 -keep-files" suite io/s cpu-ns/io
}

fio_blocks() { # likewise, in the suite's files
	fio_places "$1" "$2" 1 io_uring --fixedbufs=1 --registerfiles=1 || return 1
	echo "$(field read iops) $(field jobname usr_cpu) $(field jobname sys_cpu) $(field jobname job_runtime) $(field read total_ios)" |
		awk '{print $1, ($2 + $3) / 100 * $4 * 1e6 / $5}'
}

blocks() {
	local k d i
	secs=${SECS:-1} on="taskset -c ${CPU:-0}"
	echo "| KiB | depth | requests/s, suite | fio | ratio | CPU ns each, suite | fio | ratio |"
	echo "|---|---|---|---|---|---|---|---|"
	for k in ${SIZES:-4 16 64}; do for d in ${DEPTHS:-1 8 32 128}; do
		: >"$tmp/ours" >"$tmp/fio"
		for ((i = 0; i < pairs; i++)); do
			suite_blocks $k $d >>"$tmp/ours"
			fio_blocks $k $d >>"$tmp/fio"
		done
		for side in ours fio; do for c in 1 2; do
			cut -d' ' -f$c "$tmp/$side" | median
			cut -d' ' -f$c "$tmp/$side" | sort -g | sed -n '1p;$p'
		done; done | paste -sd' ' | awk -v k=$k -v d=$d '{
			printf "| %d | %d | %.0f (%.0f–%.0f) | %.0f (%.0f–%.0f) | %.2f | %.0f (%.0f–%.0f) | %.0f (%.0f–%.0f) | %.2f |\n",
			k, d, $1, $2, $3, $7, $8, $9, $1 / $7, $4, $5, $6, $10, $11, $12, $4 / $10 }'
	done; done
}

suite_reads() { # bytes per second, processor time in ns per byte
	rm -rf "$dir/kv"; drained
	flags="-test.bench ^BenchmarkStorageCeiling\$/op=read\$ -test.benchtime ${secs}s -workers $workers \
		-storage-capacity-gb $((2 * gib)) -ceiling-size-gb $gib" suite read-B/s cpu-ns/B
}

fio_reads() { # ENGINE OPTION...: likewise
	rm -rf "$dir/kv"; drained
	fio_json --name=j --directory="$dir/fio" --rw=read --bs=1m --ioengine="$@" --numjobs="$workers" \
		--filesize=64m --nrfiles=$((gib * 16 / workers)) --file_service_type=sequential \
		--time_based --runtime="$secs" || return 1
	per_byte read
}

# cores tells what one processor moves of what two do, of the suite and of fio.
cores() {
	local i k side way
	secs=${SECS:-5}
	for way in read write; do
		for side in suite1 suite2 fio1 fio2; do : >"$tmp/$side"; done
		if [ $way = read ]; then fio_reads psync >"$tmp/none"; fi # makes its files
		for ((i = 0; i < pairs; i++)); do
			for ((k = 0; k < 4; k++)); do
				side=$(printf '%s\n' suite1 suite2 fio2 fio1 | sed -n $(((i + k) % 4 + 1))p)
				case $side in *1) on="taskset -c 0" ;; *) on="taskset -c 0,1" ;; esac
				case $way-$side in
				read-suite*) suite_reads ;;
				read-fio*) fio_reads psync ;;
				write-suite*) suite_writes '^BenchmarkStorageCeiling$/op=write$' ;;
				write-fio*) fio_writes 64 psync ;;
				esac >"$tmp/one"
				cut -d' ' -f1 "$tmp/one" >>"$tmp/$side"
			done
		done
		for side in suite1 suite2 fio1 fio2; do
			echo "$way $side $(median <"$tmp/$side") ($(sort -g "$tmp/$side" | sed -n '1p;$p' | paste -sd-))"
		done | awk '{print; v[$2] = $3} END {printf "%s one processor of two: suite %.3f, fio %.3f\n",
			$1, v["suite1"] / v["suite2"], v["fio1"] / v["fio2"]}'
	done
}

one() { # NAME SIDE [BENCHMARK MiB]
	case $1-$2 in
	reads-suite) suite_reads ;;
	reads-psync) fio_reads psync ;;
	reads-uring) fio_reads io_uring --fixedbufs=1 --registerfiles=1 ;;
	*-suite) suite_writes "$3" ;;
	*-psync) fio_writes "$4" psync ;;
	*-uring) fio_writes "$4" io_uring --fixedbufs=1 ;; # of many files, of which one is open
	esac
}

turns() { # NAME [BENCHMARK MiB]
	local i k side all=(suite psync uring)
	for side in "${all[@]}"; do : >"$tmp/$side"; done
	for ((i = 0; i < pairs; i++)); do
		for ((k = 0; k < 3; k++)); do
			side=${all[(i + k) % 3]}
			one "$1" "$side" "${@:2}" >"$tmp/one" # ends it by failing
			cat "$tmp/one" >>"$tmp/$side"
			echo "$1 turn $((i + 1)), $side: $(cat "$tmp/one")"
		done
	done
	for side in "${all[@]}"; do
		echo "$side $(cut -d' ' -f1 "$tmp/$side" | median) $(cut -d' ' -f2 "$tmp/$side" | median)"
	done | awk -v name="$1" '{rate[$1] = $2; cpu[$1] = $3} END {
		best = rate["psync"] > rate["uring"] ? rate["psync"] : rate["uring"]
		printf "%s medians: suite %.3f GB/s, fio psync %.3f, fio io_uring %.3f, of the best %.3f; ", name, \
			rate["suite"] / 1e9, rate["psync"] / 1e9, rate["uring"] / 1e9, rate["suite"] / best
		printf "CPU %.4f, %.4f, %.4f ns/B, of psync %.3f\n", cpu["suite"], cpu["psync"], cpu["uring"], \
			cpu["suite"] / cpu["psync"]}'
}

case ${ONLY:-both} in
ceiling | both) turns ceiling '^BenchmarkStorageCeiling$/op=write$' $((gib * 1024 / 4 / workers > 64 ? 64 : gib * 1024 / 4 / workers)) ;;&
tier | both) turns tier '^BenchmarkTier$/tier=storage/op=write/size=16MiB$' 16 ;;
blocks) blocks ;;
reads)
	secs=${SECS:-5}
	fio_reads psync >"$tmp/none" # makes its files
	turns reads
	;;
cores) cores ;;
esac
