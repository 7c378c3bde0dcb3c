#!/bin/bash
# The suite's client of object stores beside plain loops: the same requests, the same number in
# flight, taking turns, against the double in a process of its own on this machine.
#
#   benchmarks/e2e/object-clients.sh [MIB [IN_FLIGHT [TURNS [SECONDS]]]]
#
# prints, for each client and direction, the medians of the turns: processor time of the client per
# GiB and per object, its throughput, and its peak memory. See benchmarks/e2e/objectloop for the
# clients. CLIENTS, a list of names, chooses among them.
set -eu
mib=${1:-8} flight=${2:-16} turns=${3:-5} seconds=${4:-3}
clients=${CLIENTS:-bare signed minio-core minio-unsigned minio suite}
here=$(cd "$(dirname "$0")/../.." && pwd) tmp=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || :; wait; rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
server=
(cd "$here" && go build -o "$tmp/" ./benchmarks/e2e/objectloop ./tiers/objecttier/s3double/serve)
export AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret
"$tmp/serve" -anonymous -bucket bench >"$tmp/urls" &
server=$!
until [ -s "$tmp/urls" ]; do sleep 0.1; done

size=$(awk "BEGIN { print int($mib * 1048576) }")
for turn in $(seq "$turns"); do for op in get put; do for client in $clients; do
	"$tmp/objectloop" -endpoint "$(cat "$tmp/urls")" -op $op -client "$client" -size "$size" \
		-in-flight "$flight" -warm 500ms -time "${seconds}s" >>"$tmp/$op-$client"
done; done; done

# median EXPRESSION FILE, of the numbers of a line by their names
median() {
	sed 's/[{}"]//g; s/,/ /g' "$2" | awk '{ for (i = 1; i <= NF; i++) { split($i, f, ":"); v[f[1]] = f[2] }
		print '"$1"' }' | sort -g | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}
printf '%-4s %-15s %14s %14s %10s %10s %10s\n' op client 'cpu-s/GiB' 'us/object' 'MiB/s' objects/s 'RSS MiB'
for op in get put; do for client in $clients; do
	f=$tmp/$op-$client
	printf '%-4s %-15s %14.3f %14.1f %10.0f %10.0f %10.0f\n' $op "$client" \
		"$(median 'v["cpu_seconds"] / v["bytes"] * 1073741824' "$f")" \
		"$(median 'v["cpu_seconds"] / v["requests"] * 1e6' "$f")" \
		"$(median 'v["bytes"] / v["seconds"] / 1048576' "$f")" \
		"$(median 'v["requests"] / v["seconds"]' "$f")" \
		"$(median 'v["peak_rss_bytes"] / 1048576' "$f")"
done; done
