#!/bin/bash
# Checkpoints of the suite beside fio, in turns: the files of 8b at 1/64, eight accelerators that have
# 4 chunks of 8 MiB in flight each, one file after the other, each flushed as it is complete.
#
#   benchmarks/e2e/checkpoint-pairs.sh DIR [TURNS [CHECKPOINTS]]
#
# Bytes per second and processor time, of both from when all eight begin to the end of the slowest
# one's last flush: fio's jobs wait for each other. Without that each has its own beginning, some 80
# ms apart, and fio tells only the longest time of one: more than there was. fio's requests are whole
# chunks, so that it writes files rounded up to them, as many requests and 3 % more bytes. The suite
# makes its files, their blocks and its bytes in its time; fio's files are there, with their blocks.
# Its writes are of two kinds, and its reads:
#
#   ready   the bytes are made before, too: this is the harder for the suite
#   refill  each buffer is filled again before it is written, as the suite's are
#   padded  it reads its own files: as many requests as the suite's, and 3 % more bytes
#   cut     it reads the suite's files without their last part: a fourteenth of the requests less, of
#           a device that may complete a whole queue at once and have one queue more for these
#
# ONLY=reads leaves out writes, but for the first.
#
# The order goes round with the turns. Before each write everything is flushed and the device has
# completed no discard for REST seconds, for which it waits PATIENCE seconds at most. fio's buffers are
# huge pages, as the suite's are, where 160 of them are free (/proc/sys/vm/nr_hugepages); else it says
# so, and fio is slower. What the suite reads it compares, 4 KiB of each MiB.
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

mean() { awk '{b += $1; c += $2} END {print b / NR, c / NR}'; }

# What follows prints bytes per second, and processor time in ns per byte.

suite() { # DIRECTION WRITES READS
	(cd "$tmp" && rm -rf results && "$bin" -test.run '^$' -test.bench Checkpoint/model=8b \
		-division open -checkpoint-scale 1/64 -checkpoint-pause 0s -checkpoint-writes "$2" \
		-checkpoint-reads "$3" -cache-dir "$dir/kv" -results-dir "$tmp/results" -progress none 2>"$tmp/err") |
		awk -v rate="$1-B/s" '{for (i = 2; i <= NF; i++) v[$i] = $(i - 1)}
			END {if (!(rate in v)) exit 1; print v[rate], v["cpu-ns/B"]}' ||
		{ cat "$tmp/err" >&2; return 1; }
}

# One of fio's jobs says that it has come, and goes on when the gate is open.
mkfifo "$tmp/gate"
printf '#!/bin/sh\necho >>%s/come\n: <%s/gate\n' "$tmp" "$tmp" >"$tmp/barrier"
chmod +x "$tmp/barrier"

fio_step() { # DIRECTION DIR [OPTION]: one checkpoint
	local op=$1 to=$2
	{
		printf '[global]\ndirect=1\nbs=%s\nioengine=%s\niodepth=4\nrw=%s\niomem=%s\n' \
			$chunk "${ENGINE:-libaio}" "$op" "$iomem"
		printf 'file_service_type=sequential\nopenfiles=1\nallow_file_create=0\ninvalidate=0\n'
		printf 'fsync_on_close=1\nend_fsync=1\ngroup_reporting\n'
		printf 'exec_prerun=%s/barrier\n%s\n' "$tmp" "${3:-}"
		for a in 0 1 2 3 4 5 6 7; do
			local name="$to/zero_pp_rank_${a}_mp_rank_0"
			printf '[a%d]\nfilename=%s_model_states.pt:%s_optim_states.pt\n' $a "$name" "$name"
		done
	} >"$tmp/job"
	: >"$tmp/come"
	(cd "$tmp" && exec fio --output=fio.json --output-format=json job) &
	while kill -0 $! 2>/dev/null && (($(wc -l <"$tmp/come") < 8)); do sleep 0.1; done
	exec 3<>"$tmp/gate" # open for who comes, as long as fio runs
	wait $!
	exec 3<&-
	# What the kernel says of all jobs is in percent of their times together.
	awk -F'[:,]' -v op="\"$op\" *:" '
		$0 ~ op {of = 1}
		of && /"io_bytes"/ && !bytes {bytes = $2}
		of && /"bw_bytes"/ && !rate {rate = $2}
		/"job_runtime"/ {time = $2}
		/"(usr|sys)_cpu"/ {percent += $2}
		END {print rate + 0, percent / 100 * time * 1e6 / bytes}' "$tmp/fio.json"
}
chunk=$((8 << 20))

steps() { # DIRECTION DIR [OPTION]: the mean over checkpoints, as the suite's is
	for i in $(seq "$number"); do fio_step "$1" "$2/global_epoch1_step$i" "${3:-}"; done | mean
}

writes() { # suite|ready|refill
	if [ "$1" = suite ]; then
		rm -rf "$dir/kv"; quiet; suite write "$number" 0
		return
	fi
	makes_files
	quiet; steps write "$dir/fio" "refill_buffers=$([ "$1" = ready ]; echo $?)"
}

makes_files() { # fio's, of the sizes of the suite's, rounded up
	rm -rf "$dir/fio"
	local f to
	for f in "$dir"/kv/ckpt_8b/*/*.pt; do
		to=$dir/fio${f#"$dir/kv/ckpt_8b"}
		mkdir -p "$(dirname "$to")"
		fallocate -l $((($(stat -c %s "$f") + chunk - 1) / chunk * chunk)) "$to"
	done
}

reads() { # suite|padded|cut
	case $1 in
	suite) suite read 0 "$number" ;;
	padded) steps read "$dir/fio" ;;
	cut) steps read "$dir/kv/ckpt_8b" ;;
	esac
}

median() { # FILE COLUMN
	awk -v c="$2" '{print $c}' "$1" | sort -g |
		awk '{v[NR] = $1} END {print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'
}

declare -A kinds=([writes]="suite ready refill" [reads]="suite padded cut")
suite write "$number" 0 >"$tmp/first" # for fio's sizes, and not counted
ops="writes reads"
if [ "${ONLY:-}" = reads ]; then # of files that fio has written once: blocks without bytes are not read
	ops=reads
	writes ready >"$tmp/first"
fi
for ((i = 0; i < turns; i++)); do
	for op in $ops; do
		read -ra who <<<"${kinds[$op]}"
		for ((k = 0; k < ${#who[@]}; k++)); do
			one=${who[(k + i) % ${#who[@]}]}
			"$op" "$one" >"$tmp/one"
			cat "$tmp/one" >>"$tmp/$op.$one"
		done
		echo "$op turn $((i + 1)):$(for one in "${who[@]}"; do
			tail -n 1 "$tmp/$op.$one" | awk -v who="$one" '{printf " %s %.3f GB/s", who, $1 / 1e9}'
		done)"
	done
done
for op in $ops; do
	rate=$(median "$tmp/$op.suite" 1)
	for one in ${kinds[$op]}; do
		echo "$op $one $(median "$tmp/$op.$one" 1) $(median "$tmp/$op.$one" 2) $rate" | awk '{
			printf "%s medians: %s %.3f GB/s, %.3f cpu-s/GiB", $1, $2, $3 / 1e9, $4 * 1.073741824
			if ($2 != "suite") printf ", the suite %.3f times as fast", $5 / $3
			print ""
		}'
	done
done
