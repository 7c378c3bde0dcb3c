#!/usr/bin/env bash
# Compares what the device model predicts with what a drive does, and prints a table in Markdown:
#
#	testdata/device-model.sh [limited] [iops] [disk]
#
# limited  a loop device in memory that the kernel limits to 400 MiB/s of reads and 200 MiB/s of writes
# iops     the same with 1000 reads and 500 writes per second, used with small requests
# disk     the directory DISK (/var/tmp), 4 GiB of it
#
# First StorageCeiling and Tier are run on the drive and kvreport device makes the parameters of them: other sizes, other
# requests, other numbers at a time than what follows. With these parameters, which do not change any more, each load is then
# simulated and run for 20 s, five times with five seeds; the last column is the median of predicted ÷ real of the five pairs.
#
# limited and iops need root, cgroup v1 blkio, 5.2 GiB of memory and some 15 minutes each. AROUND is put before every real
# run, for a machine on which other work has to be kept away: AROUND='nice -n -10'.
set -euo pipefail
cd "$(dirname "$0")/.."

pairs=${PAIRS:-5}
work=$(mktemp -d)
group=/sys/fs/cgroup/blkio/kvbench-device-model
clean() {
	set +e
	! mountpoint -q "$work/drive" || umount "$work/drive" || umount --lazy "$work/drive"
	[ ! -s "$work/loop" ] || losetup --detach "$(cat "$work/loop")"
	! mountpoint -q "$work/memory" || umount "$work/memory"
	[ ! -d "$group" ] || rmdir "$group"
	rm -rf "$work" "${DISK:-/var/tmp}/kv-device-model"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
go test -c -o "$work/kvbench.test" ./benchmarks
go build -o "$work/kvreport" ./tools/kvreport

# loop makes the drive, ext4 on a loop device; limit FILE NUMBER limits those who join the group.
loop() {
	mkdir -p "$work/memory" "$work/drive"
	mount -t tmpfs -o size=5200m tmpfs "$work/memory"
	truncate -s 5g "$work/memory/disk"
	losetup --find --show --direct-io=on "$work/memory/disk" >"$work/loop"
	mkfs.ext4 -q -m 0 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard "$(cat "$work/loop")"
	mount -o noatime "$(cat "$work/loop")" "$work/drive"
	# Every page of the file in memory once, or the first run would pay for that.
	dd if=/dev/zero of="$work/drive/fill" bs=1M oflag=direct status=none 2>&1 | grep -v 'No space left' >&2 || true
	rm "$work/drive/fill"
	mkdir -p "$group"
}
limit() { printf '%s %d\n' "$(lsblk -dno MAJ:MIN "$(cat "$work/loop")" | tr -d ' ')" "$2" >"$group/blkio.throttle.$1_device"; }
unloop() {
	umount "$work/drive"
	losetup --detach "$(cat "$work/loop")"
	rm "$work/loop"
	umount "$work/memory"
	rmdir "$group"
}

common=(-division open -storage-capacity-gb "${CAPACITY:-4}" -progress none -results-dir "$work/results")

# real FILE ARGS… runs a benchmark on the drive, in the group if there is one. A file gets the lines of all runs.
real() {
	local out=$1
	shift
	export KVBENCH_CACHE_DIR=$dir
	${AROUND:-} bash -c '[ ! -d "$0" ] || echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" "$work/kvbench.test" -test.run '^$' "${common[@]}" "$@" \
		>>"$out" 2>"$work/errors" || { cat "$work/errors" >&2; return 1; }
}

calibrate() {
	local out=$work/$drive-plain
	real "$out" -test.bench StorageCeiling -test.benchtime 10s -workers 8
	real "$out" -test.bench 'Tier/tier=storage/op=(read|write)/size=(1|16)MiB' -test.benchtime 10s -workers 1 -io-depth 1
	# Little capacity makes small files, of which some have to be done in that time.
	real "$out" -test.bench 'StorageCeiling/op=(read|write)' -test.benchtime 10s -workers 8 -chunk-size 64KiB -storage-capacity-gb 0.5
	"$work/kvreport" device "$out" >"$work/$drive-device" 2>"$work/$drive-why"
}

# pair NAME ARGS… runs and simulates one load.
pair() {
	local name=$drive-$1
	shift
	for ((i = 0; i < pairs; i++)); do
		real "$work/$name-real" -test.benchtime 20s -seed $((42 + i)) "${model[@]}" "$@"
		"$work/kvbench.test" -test.run '^$' "${common[@]}" -test.benchtime 20s -seed $((42 + i)) "${model[@]}" "$@" \
			-simulate-device "$(cat "$work/$drive-device")" >>"$work/$name-simulated" 2>"$work/errors" || { cat "$work/errors" >&2; return 1; }
	done
}

# table NAME TEXT prints the medians of a load.
table() {
	for unit in read-B/s read-p95-ns write-B/s e2e-p95-ns; do
		paste -d' ' <(values $unit "$work/$drive-$1-real") <(values $unit "$work/$drive-$1-simulated") | awk -v unit=$unit -v load="$2" '
			function median(v, n,  i, k, x) {
				for (i = 2; i <= n; i++) { x = v[i]; for (k = i; k > 1 && v[k-1] > x; k--) v[k] = v[k-1]; v[k] = x }
				return (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2
			}
			NF == 2 { n++; real[n] = $1; simulated[n] = $2; ratio[n] = $2 / $1 }
			END {
				scale = unit ~ /B\/s/ ? 1048576 : 1e6; name = unit ~ /B\/s/ ? "MiB/s" : "ms"; sub(/-(B\/s|ns)$/, "", unit)
				if (n) printf "| %s | %s | %.0f %s | %.0f %s | %.2f |\n", load, unit, median(real, n) / scale, name, median(simulated, n) / scale, name, median(ratio, n)
			}'
	done
}
values() { awk -v unit="$1" '/^Benchmark.*op/ { for (i = 2; i <= NF; i++) if ($i == unit) print $(i-1) }' "$2"; }

# loads RATE runs what is predicted: an overloaded closed loop, an overloaded open one, and an open one with room.
loads() {
	pair closed -test.bench Synthetic -num-users 16 -arrival closed-loop
	pair stress -test.bench MaxStorageStress -num-users 16
	pair open -test.bench Synthetic -num-users 16 -request-rate "$1"
	printf '%s\n\n' "$drive: $(cat "$work/$drive-device")"
	sed 's/^/    /' "$work/$drive-why"
	printf '\n| load | | real | predicted | ÷ |\n|---|---|---|---|---|\n'
	table closed "Synthetic, 16 users, closed-loop"
	table stress "MaxStorageStress, 16 users"
	table open "Synthetic, 16 users, $1 requests/s"
	echo
}

[ $# -gt 0 ] || set -- limited iops disk
for drive in "$@"; do
	# Entries of 6 KiB per token: 3 to 150 MB.
	model=(-model tiny-1b -num-gpus 4 -tensor-parallel 4)
	case $drive in
	limited)
		loop
		dir=$work/drive/kv
		limit read_bps $((400 << 20))
		limit write_bps $((200 << 20))
		calibrate
		loads 3
		unloop
		;;
	iops)
		loop
		dir=$work/drive/kv
		limit read_bps $((400 << 20))
		limit write_bps $((200 << 20))
		limit read_iops 1000
		limit write_iops 500
		calibrate
		model+=(-chunk-size 256KiB)
		loads 1.8
		unloop
		;;
	disk)
		dir=${DISK:-/var/tmp}/kv-device-model
		calibrate
		loads "${RATE:-20}"
		;;
	*)
		echo "no such drive: $drive" >&2
		exit 2
		;;
	esac
done
