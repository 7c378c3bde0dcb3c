# What fio-pairs.sh and cores.sh share: a directory of their own below $1, the suite's binary, and one
# run of the suite and of fio. Both have set -eu.
command -v fio >/dev/null || { echo "no fio here: apt-get install fio" >&2; exit 2; }
here=$(cd "$(dirname "$0")/../.." && pwd) tmp=$(mktemp -d)
mkdir -p "$1"
dir=$(mktemp -d "$(cd "$1" && pwd)/pairs.XXXXXX") # its own: DIR/kv may be somebody's
trap 'rm -rf "$tmp" "$dir"' EXIT
if [ -n "${BINARY:-}" ]; then cp "$BINARY" "$tmp/kvbench.test"
else (cd "$here" && go test -c -o "$tmp/kvbench.test" ./benchmarks); fi
on= # a command in front of both

# Both say why where they fail: a number of nothing is none.
suite() { # UNIT... of one benchmark: the values; the flags are in $flags
	(cd "$tmp" && $on ./kvbench.test -test.run '^$' -division open -cache-dir "$dir/kv" \
		-results-dir "$tmp/results" -progress none $flags >out 2>err) ||
		{ cat "$tmp/out" "$tmp/err" >&2; return 1; }
	local unit
	for unit; do grep -o "[0-9][0-9.e+]* $unit" "$tmp/out" | cut -d' ' -f1; done | paste -sd' '
}

fio_json() { # fio's result in $tmp/json; without huge pages it says hardly anything, and may end well
	if ! $on fio --direct=1 --iomem="${IOMEM:-mmaphuge}" --group_reporting \
		--output-format=json --output="$tmp/json" "$@" >"$tmp/err" 2>&1 ||
		! grep -q '"total_ios" : [1-9]' "$tmp/json"; then
		echo "fio moved nothing, with buffers in ${IOMEM:-mmaphuge} and $(cat \
			/proc/sys/vm/nr_hugepages) huge pages reserved (IOMEM=mmap does without):" >&2
		cat "$tmp/err" >&2; grep -m1 '"error"' "$tmp/json" >&2
		return 1
	fi
}

field() { awk -F'[:,]' -v s="\"$1\"" -v f="\"$2\"" \
	'$1 ~ s {w = 1} w && $1 ~ f {print $2 + 0; exit}' "$tmp/json"; }

fio_places() { # KiB DEPTH JOBS ENGINE OPTION...: reads at random places of the suite's last files, for $secs
	(cd "$dir/kv" && fio_json --name=j --filename="$(find . -type f -size +1M | sort | paste -sd:)" \
		--file_service_type=random --rw=randread --bs="$1k" --iodepth="$2" --numjobs="$3" \
		--ioengine="${@:4}" --norandommap --randrepeat=0 --time_based \
		--runtime="$(awk -v s="$secs" 'BEGIN {print s * 1000}')ms")
}

median() { sort -g | awk '{v[NR] = $1} END {print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'; }
