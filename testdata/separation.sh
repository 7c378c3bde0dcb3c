#!/usr/bin/env bash
# Which number separates a fast drive from a slow one? Simulates drives that read 3, 7 and 14 GB/s and write half as much, in
# virtual time, and prints the table of benchmarks/measurements/separation.md. It takes a minute of processor time.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go test -c -o "$work/kvbench.test" ./benchmarks

cat >"$work/scenario.yaml" <<'END'
about: which number separates a fast drive from a slow one
benchtime: 300s
parameters: {division: open}
jobs:
  - {name: 200_users, bench: MaxStorageStress}
  - {name: 200_users, bench: PrefillOnly|DecodeOnly}
  - {name: 8_users, bench: DecodeOnly, parameters: {num-users: 8}}
  - {name: closed_loop, bench: Synthetic, parameters: {num-users: 16, arrival: closed-loop}}
  - {name: 2_per_s, bench: Synthetic, parameters: {num-users: 8, model: tiny-1b, request-rate: 2}}
  - {name: 200_requests, bench: Synthetic, parameters: {num-users: 8, model: tiny-1b, max-requests: 200}}
  - {name: 1_GPU, bench: MultiTurn, parameters: {num-users: 20, prefill-rate: 10000}}
  - {name: rising, bench: AutoscaleQoS|AutoscaleCapacity}
END
cat >"$work/rows" <<'END'
MaxStorageStress read-B/s write-B/s tok/s hit-ratio read-io-p99-ns read-p95-ns
PrefillOnly write-B/s write-p95-ns
DecodeOnly/job=200 read-B/s read-p95-ns
DecodeOnly/job=8 read-B/s read-io-p50-ns read-p95-ns tok/s
Synthetic/job=closed read-B/s req/s tok/s e2e-p95-ns
Synthetic/job=2_per_s tok/s read-B/s hit-ratio read-p95-ns e2e-p95-ns
Synthetic/job=200_requests ns/op read-p95-ns
MultiTurn tok/s ttft-mean-ns hit-ratio
AutoscaleQoS peak-B/s sustained-users
AutoscaleCapacity peak-B/s sustained-users
END
for drive in 3 7 14; do
	"$work/kvbench.test" -test.run '^$' -test.bench . -scenario "$work/scenario.yaml" -results-dir "$work/results" -progress none \
		-simulate-device "read=${drive}GB/s,write=$((500 * drive))MB/s,read-latency=80us,write-latency=20us" \
		>"$work/$drive" 2>"$work/errors" || { cat "$work/errors" >&2; exit 1; }
done

# The gain is that of 14 and of 7 GB/s over 3 GB/s, above 1 where the number is better.
awk '
/^Unit/ { lower[$2] = $3 == "better=lower"; next }
/^Benchmark/ {
	sub(/^Benchmark/, "", $1); sub(/-[0-9]+$/, "", $1)
	for (i = 3; i < NF; i += 2) value[$1, $(i + 1), FILENAME] = $i
	names[$1]
}
function text(x, unit) {
	if (unit ~ /ns/) return x < 1e9 ? sprintf("%.3g ms", x / 1e6) : sprintf("%.3g s", x / 1e9)
	if (unit ~ /B\/s/) return sprintf("%.3g GB/s", x / 1e9)
	return sprintf("%.3g", x)
}
function gain(a, b, unit) { return lower[unit] || unit == "ns/op" ? a / b : b / a }
FILENAME ~ /rows$/ {
	for (name in names) if (index(name, $1) == 1) for (i = 2; i <= NF; i++) {
		unit = $i; a = value[name, unit, ARGV[1]]; b = value[name, unit, ARGV[2]]; c = value[name, unit, ARGV[3]]
		if (a == "") continue
		middle = gain(a, b, unit); high = gain(a, c, unit)
		least = middle < high / middle ? middle : high / middle
		says = least >= 1.6 ? "yes" : least >= 1.15 ? "weakly" : high >= 1.6 ? "not all three" : "no"
		printf "| %s | %s | %s | %s | %s | 1 : %.2f : %.2f | %s |\n", name, unit, text(a, unit), text(b, unit), text(c, unit), middle, high, says
	}
}
BEGIN {
	print "| benchmark | number | 3 GB/s | 7 GB/s | 14 GB/s | gain (the drive: 1 : 2.33 : 4.67) | separates |\n|---|---|---|---|---|---|---|"
}' "$work/3" "$work/7" "$work/14" "$work/rows"
