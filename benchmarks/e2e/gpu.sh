#!/bin/bash
# The gpu tier on a real card: at most 5 minutes, without Go, in a directory with 24 GiB of free space.
#
#   CGO_ENABLED=1 go test -c -o kvbench.test ./benchmarks                    # elsewhere: needs a C compiler
#   CGO_ENABLED=1 go build -o kvreport ./tools/kvreport                      # or the static one of make dist
#   benchmarks/e2e/gpu.sh kvbench.test kvreport DIR
#
# GIB is the size of the tier (16), SECS the length of each measurement (5), MODEL the model of option 2. Each row of the table is a
# check: its value, what it has to be, and whether it is. The exit status is the number of checks that failed. What the commands printed is
# in DIR/gpu-*.txt. With the fake driver of the tests the rates mean nothing.
#
#   discover   the cards that kvreport reports
#   link       rate of the tier's copies (Tier/tier=gpu) ÷ plain copies of the same run, each direction: 0.9 at least. What 16 workers write
#              may be less, because the processors make the bytes
#   option 2   complete with a tier of GIB and all bytes verified; bytes over PCIe by NVML ÷ bytes of the tier, where the card counts them
#   full       95 % of the free memory is used, more than there is is refused, and nothing is left in use
#   signal     Ctrl-C: exit status 130, and nothing is left in use
#   two cards  both have a share of the bytes
set -u
kvbench=$(realpath "$1") kvreport=$(realpath "$2") dir=$(realpath "$3")
gib=${GIB:-16} secs=${SECS:-5} failed=0
common=(-test.run '^$' -gpu-backend cuda -division open -cache-dir gpu-cache -storage-capacity-gb 20)
cd "$dir" || exit 255
rm -rf gpu-results gpu-cache gpu-*.txt

row() { # name value wanted, and a test in awk's words of the value v
	local mark=ok
	awk -v v="$2" "BEGIN { exit !($4) }" || { mark=FAILED; failed=$((failed + 1)); }
	printf '%-34s %14s  %-22s %s\n' "$1" "$2" "$3" "$mark"
}

run() { # NAME ARGUMENT… runs the suite; its output is in gpu-NAME.txt, its exit status in $status
	local name=$1
	shift
	"$kvbench" "${common[@]}" -results-dir "gpu-results/$name" "$@" >"gpu-$name.txt" 2>&1
	status=$?
}

value() { # NAME KEY: all numbers of a key in the results of a run, one per line
	find "gpu-results/$1" -name 'kvcache_results_*.json' -exec sed -n "s/^ *\"$2\": \([0-9.e+]*\),*$/\1/p" {} +
}

rate() { # NAME UNIT: a value of the benchmark's line
	awk -v unit="$2" '/^Benchmark/ { for (i = 2; i <= NF; i++) if ($i == unit) print $(i - 1) }' "gpu-$1.txt" | tail -n 1
}

in_use() { # MiB in use on all cards
	if command -v nvidia-smi >/dev/null; then
		nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | awk '{ n += $1 } END { print n }'
	else
		echo 0
	fi
}

"$kvreport" discover . >gpu-discover.txt 2>&1
grep '^gpu' gpu-discover.txt
cards=$(grep -c '^gpu [0-9]' gpu-discover.txt)
row 'discover: cards' "$cards" 'at least 1' 'v >= 1'
idle=$(in_use)

ratio() { awk -v a="${1:-0}" -v b="${2:-0}" 'BEGIN { print b ? a / b : 0 }'; }

for op in read write; do
	run "link-$op" -test.bench "Tier/tier=gpu/op=$op/size=16MiB" -test.benchtime "${secs}s" -gpu-mem-gb "$gib" -workers 1 -io-depth 1 \
		-chunk-size 16MiB -verify none
	plain=$(value "link-$op" "plain_${op}_bytes_per_s")
	copies=$(value "link-$op" device_ns_per_mib | awk 'NR == 1 { print 2 ^ 20 / $1 * 1e9 }')
	run "all-$op" -test.bench "Tier/tier=gpu/op=$op/size=16MiB" -test.benchtime "${secs}s" -gpu-mem-gb "$gib" -workers 16 -io-depth 2 \
		-chunk-size 4MiB -verify none
	echo "$op: plain copies ${plain:-nothing} B/s, copies of one worker ${copies:-nothing} B/s, 16 workers $(rate "all-$op" "$op-B/s") B/s"
	row "link $op: copies ÷ plain copies" "$(ratio "$copies" "$plain")" '0.9 at least' 'v >= 0.9'
done
row 'link read: 16 workers ÷ plain' "$(ratio "$(rate all-read read-B/s)" "$(value link-read plain_read_bytes_per_s)")" '0.9 at least' 'v >= 0.9'

run option2 -test.bench StorageThroughput -test.benchtime "$((4 * secs))s" -gpu-mem-gb "$gib" -cpu-mem-gb 2 -num-users 40 \
	-model "${MODEL:-llama3.1-8b}" -verify full
row 'option 2: exit status' "$status" '0' 'v == 0'
row 'option 2: bytes in the gpu tier' "$(value option2 peak_bytes | head -n 1)" 'some' 'v > 0'
for name in sent received; do
	counted=$(grep -o "$name [^(]*(gpu tier [^)]*ratio [0-9.]*" gpu-option2.txt | grep -o '[0-9.]*$' | tail -n 1)
	row "option 2: PCIe $name ÷ tier" "${counted:-unknown}" '0.95 to 1.2, or unknown' 'v == "unknown" || v >= 0.95 && v <= 1.2'
done
row 'option 2: entries left in the cache' "$(find gpu-cache -type f 2>/dev/null | wc -l)" '0' 'v == 0'

free=$(value link-read free_bytes | head -n 1)
most=$(awk -v free="${free:-0}" 'BEGIN { print free * 0.95 / 2 ^ 30 }')
run full -test.bench Tier/tier=gpu/op=write/size=16MiB -test.benchtime "${secs}s" -gpu-mem-gb "$most"
row "full: exit status with $most GiB" "$status" '0' 'v == 0'
run refused -test.bench Tier/tier=gpu/op=write/size=16MiB -gpu-mem-gb 65536
grep '^-gpu-mem-gb' gpu-refused.txt
row 'full: exit status with 65536 GiB' "$status" '2' 'v == 2'
row 'full: MiB more in use than before' "$(($(in_use) - idle))" '64 at most' 'v <= 64'

timeout --preserve-status -s INT "$((2 * secs))" "$kvbench" "${common[@]}" -results-dir gpu-results/signal -gpu-mem-gb "$gib" \
	-test.bench Tier/tier=gpu/op=read/size=16MiB -test.benchtime 300s >gpu-signal.txt 2>&1
row 'signal: exit status' "$?" '130' 'v == 130'
grep -q incomplete gpu-signal.txt
row 'signal: not marked incomplete' "$?" '0' 'v == 0'
row 'signal: MiB more in use than before' "$(($(in_use) - idle))" '64 at most' 'v <= 64'

if [ "$cards" -ge 2 ]; then
	run two -test.bench Tier/tier=gpu/op=read/size=16MiB -test.benchtime "${secs}s" -gpu-mem-gb "$gib" -num-gpus 2 -workers 16 \
		-io-depth 2 -chunk-size 4MiB -verify none
	row 'two cards: exit status' "$status" '0' 'v == 0'
	row 'two cards: read B/s' "$(rate two read-B/s)" 'some' 'v > 0'
	row 'two cards: with a share' "$(value two used_bytes | tail -n 2 | awk '$1 > 2 ^ 20' | wc -l)" '2, or unknown' 'v == 2 || v == 0'
fi
rm -rf gpu-cache
echo "$failed checks failed"
exit "$failed"
