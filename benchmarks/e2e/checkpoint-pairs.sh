#!/bin/bash
# Checkpoints of the suite beside fio, in turns: the files of 8b at 1/64, eight accelerators that have
# 4 chunks of 8 MiB in flight each, one file after the other, each flushed as it is complete.
#
#   benchmarks/e2e/checkpoint-pairs.sh DIR [TURNS [CHECKPOINTS]]
#
# fio makes no files of two sizes in one job, so that it finds its own there, with their blocks, and is
# spared what the suite does in its time: creating them, and making bytes. Both read what the suite
# wrote. In every other turn fio is first. Before each write of either everything is flushed and the
# device has completed no discard for REST seconds, for which it waits PATIENCE seconds at most. fio's
# buffers are huge pages, as the suite's are, where 160 of them are free (/proc/sys/vm/nr_hugepages);
# else it says so, and fio is slower.
set -euo pipefail
turns=${2:-5} number=${3:-2} rest=${REST:-3}
here=$(cd "$(dirname "$0")/../.." && pwd) tmp=$(mktemp -d)
mkdir -p "$1"
dir=$(mktemp -d "$(cd "$1" && pwd)/pairs.XXXXXX") # its own: DIR/kv may be somebody's
trap 'rm -rf "$tmp" "$dir"' EXIT
bin=${KVBENCH:-$tmp/kvbench.test} # made before, perhaps
[ -x "$bin" ] || (cd "$here" && go test -c -o "$bin" ./benchmarks)

# What the kernel counts of the device's discards (Documentation/block/stat.rst, field 12).
stat=/sys/class/block/$(basename "$(findmnt -no SOURCE -T "$dir")")/stat
discards() { if [ -r "$stat" ]; then awk '{print $12}' "$stat"; fi; }

quiet() {
	sync
	local before=-1 now end=$((SECONDS + ${PATIENCE:-30})) # others may discard, too
	while now=$(discards) && [ "$now" != "$before" ] && ((SECONDS < end)); do before=$now; sleep "$rest"; done
}

iomem=mmaphuge
if [ "$(awk '/^HugePages_Free/ {print $2}' /proc/meminfo)" -lt 160 ]; then
	iomem=mmap; echo "fio without huge pages, of which fewer than 160 are free: it is slower so" >&2
fi

mean() { awk '{s += $1} END {print s / NR}'; }

suite() { # DIRECTION WRITES READS: bytes per second
	(cd "$tmp" && rm -rf results && "$bin" -test.run '^$' -test.bench Checkpoint/model=8b \
		-division open -checkpoint-scale 1/64 -checkpoint-pause 0s -checkpoint-writes "$2" \
		-checkpoint-reads "$3" -cache-dir "$dir/kv" -results-dir "$tmp/results" -progress none 2>"$tmp/err") |
		grep -o "[0-9][0-9.e+]* $1-B/s" | awk '{print $1}' || { cat "$tmp/err" >&2; return 1; }
}

fio_step() { # DIRECTION DIR: bytes per second of one checkpoint
	{
		printf '[global]\ndirect=1\nbs=8m\nioengine=%s\niodepth=4\nrw=%s\niomem=%s\n' \
			"${ENGINE:-libaio}" "$1" "$iomem"
		printf 'file_service_type=sequential\nopenfiles=1\nallow_file_create=0\ninvalidate=0\n'
		printf 'fsync_on_close=1\nend_fsync=1\ngroup_reporting\n'
		for a in 0 1 2 3 4 5 6 7; do
			local name="$2/zero_pp_rank_${a}_mp_rank_0"
			printf '[a%d]\nfilename=%s_model_states.pt:%s_optim_states.pt\n' $a "$name" "$name"
		done
	} >"$tmp/job"
	fio --output-format=json "$tmp/job" | awk -F'[:,]' -v op="\"$1\" *:" \
		'$0 ~ op {w = 1} w && /"bw_bytes"/ && !done {print $2 + 0; done = 1}'
}

steps() { # DIRECTION DIR: bytes per second, the mean over checkpoints as the suite's is
	for i in $(seq "$number"); do fio_step "$1" "$2/global_epoch1_step$i"; done | mean
}

writes() { # suite|fio: bytes per second
	if [ "$1" = suite ]; then
		rm -rf "$dir/kv"; quiet; suite write "$number" 0
	else
		rm -rf "$dir/fio"
		for f in "$dir"/kv/ckpt_8b/*/*.pt; do
			local to=$dir/fio${f#"$dir/kv/ckpt_8b"}
			mkdir -p "$(dirname "$to")"; fallocate -l "$(stat -c %s "$f")" "$to"
		done
		quiet; steps write "$dir/fio"
	fi
}

reads() { if [ "$1" = suite ]; then suite read 0 "$number"; else steps read "$dir/kv/ckpt_8b"; fi; }

median() { sort -g | awk '{v[NR] = $1} END {print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'; }

suite write "$number" 0 >"$tmp/first" # for fio's sizes, and not counted
for ((i = 1; i <= turns; i++)); do
	order="suite fio"; if ((i % 2 == 0)); then order="fio suite"; fi
	for op in writes reads; do
		for who in $order; do
			"$op" "$who" >"$tmp/one"; cat "$tmp/one" >>"$tmp/$op.$who"
		done
		echo "$op turn $i: suite $(tail -n 1 "$tmp/$op.suite") B/s, fio $(tail -n 1 "$tmp/$op.fio") B/s"
	done
done
for op in writes reads; do
	echo "$op $(median <"$tmp/$op.suite") $(median <"$tmp/$op.fio")" |
		awk '{printf "%s medians: suite %.3f GB/s, fio %.3f GB/s, ratio %.3f\n", $1, $2/1e9, $3/1e9, $2/$3}'
done
