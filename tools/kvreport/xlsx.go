package main

import (
	"io"

	"kvbench/tools/command"
	"kvbench/tools/view/xlsx"
)

var xlsxCommand = command.Command{
	Name:  "xlsx",
	Args:  "IN… -o FILE",
	Short: "workbook with charts: one row per result, runs side by side",
	Long: `
Makes a workbook. Summary has one row per result: the columns of the Python benchmark's sheet first, in its order, then
ours. Run Parameters and Performance Metrics set the runs (one per argument) side by side, with the median of the trials,
its confidence interval and the spread, and the change against the first run. QoS Metrics, Device Tracing and Trace
Histograms follow, then what only some results have (Simulation, Autoscaling, Block Cache, Replay, Validation), and Charts
with their data. Simulated results are coloured in Summary and called "(simulated)" everywhere. Units stand in the headers; an empty cell is an unknown value, never 0.

Results of the Python benchmark fill the same columns by the same keys; what they do not have stays empty.`,
	Example: `
go test ./benchmarks -run '^$' -bench 'Tier|MaxStorageStress' -count 6 -cache-dir /mnt/a > a.txt
go test ./benchmarks -run '^$' -bench 'Tier|MaxStorageStress' -count 6 -cache-dir /mnt/b > b.txt
go tool kvreport xlsx a.txt b.txt -o drives.xlsx`,
	Run: func(args []string, stdin io.Reader, _, stderr io.Writer) int {
		return writeDocument("xlsx", args, stdin, stderr, xlsx.Write, xlsx.Missing)
	},
}
