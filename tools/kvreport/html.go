package main

import (
	"io"

	"kvbench/tools/command"
	"kvbench/tools/view"
	"kvbench/tools/view/html"
)

var htmlCommand = command.Command{
	Name:  "html",
	Args:  "IN… -o FILE",
	Short: "one page with plots that opens from disk",
	Long: `
Makes one self-contained HTML page, light or dark as the reader's system is, and fit for printing: what ran, headline
numbers with confidence intervals, bandwidth over time, latency percentile curves, tier fill and evictions, the tier table,
sweeps as curves with their knee, block sizes and queue depths of traced results, and where a result has them: the rounds of
an autoscaler, the block hit ratio beside the ideal one over time, a replay, a validation, a device model. What is simulated
says so in every name and figure, and is never compared with what was measured.

Each argument is one run; the first is what the others are compared with. A change is marked as significant when the
Mann-Whitney test says so at 5 %: for the headline metric of each benchmark after Holm's correction over all benchmarks of
the pair of runs, for the other metrics taken alone. Four trials of each run are the least that can differ significantly,
six are a good number.`,
	Example: `
go test ./benchmarks -run '^$' -bench . -count 6 -cache-dir /mnt/a > a.txt
go test ./benchmarks -run '^$' -bench . -count 6 -cache-dir /mnt/b > b.txt
go tool kvreport html a.txt b.txt -o drives.html`,
	Run: func(args []string, stdin io.Reader, _, stderr io.Writer) int {
		return writeDocument("html", args, stdin, stderr, html.Write, view.Missing)
	},
}
