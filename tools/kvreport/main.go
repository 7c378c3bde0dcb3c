package main

import (
	"embed"
	"os"
)

// help has a text for each command: purpose, rules and examples.
//
//go:embed help
var help embed.FS

// commands has the commands in the order of the help: first those that read results, then those about
// machines and files.
var commands = []Command{
	{"json", "IN… [-o FILE] [-format python]", "all results as one JSON document", runJSON},
	{"xlsx", "IN… -o FILE [-ignore SETTING,…]",
		"workbook with charts: one row per trial, runs side by side", runXLSX},
	{"csv", "IN… [-o FILE]", "the columns of the workbook's first sheet, one row per trial",
		runCSV},
	{"html", "IN… -o FILE [-ignore SETTING,…]",
		"one page with plots that opens from disk", runHTML},
	{"quote", "IN [IN] [-format text|markdown] [-ignore SETTING,…]",
		"what may be quoted of a run, or which of two runs is faster at what", runQuote},
	{"fio", "IN… [-o FILE|DIR] [-window DURATION]",
		"one fio job per traced result, which makes the same load elsewhere", runFio},
	{"turns", "-old COMMAND -new COMMAND|NAME=COMMAND NAME=COMMAND -out DIR [-count 8] [-stop-early] " +
		"[-max-regress …] [-alpha 0.05] [-allow-few] [-ignore SETTING,…]",
		"run two commands in turns, to compare what they print", runTurns},
	{"gate", "-old IN… -new IN… [-max-regress METRIC=PERCENT,…] [-alpha 0.05] [-count N] " +
		"[-format text|markdown|github|junit]",
		"fail when new results are worse than old ones by more than is allowed", runGate},
	{"aggregate", "DIR [-o FILE]",
		"one summary over the ranks and trials of a results directory", runAggregate},
	{"submission", "DIR -organisation O -system S -o OUT [-division closed|open] [-code DIR] " +
		"[-checker V] [-discover FILE]…",
		"the directory tree of a submission, checked against the closed division", runSubmission},
	{"discover", "[DIR] [-json]", "this machine: CPU, memory, GPUs, block devices, a directory; " +
		"recommended parameters", runDiscover},
	{"datasize", "[-bench NAME] [any parameter of the benchmarks] [-write-gbps N] [-json]",
		"memory and disk that a run will need", runDatasize},
	{"curve", "TRACE… [-model NAME] [-drive SIZE] [-capacities SIZE,…] [-format " +
		"text|json|csv|html] [-o FILE]",
		"hit ratio, rates and wear of a cache of every capacity, from a block trace", piped(runCurve)},
	{"convert", "TRACE… [-o FILE] [-block-tokens N]",
		"block traces of any format as Mooncake's JSON lines", piped(runConvert)},
	{"device", "IN… [-format text|json]",
		"the -simulate-device text of a drive, from runs of StorageCeiling and Tier on it",
		runDevice},
	{"dedup", "PATH… [-block-size 4KiB] [-json] [-max-blocks N]",
		"duplicate blocks and zstd ratio of existing files", runDedup},
	{"trace", "-comm NAME|-pid N|-cgroup DIR|-dev DEVICE [-dir DIR] [-duration 60s] [-fio FILE] " +
		"[-json FILE] [-level file]",
		"block requests of a running process, and a fio job of them", runTrace},
	{"completion", "bash|zsh|fish", "a script with which a shell completes commands and flags", runCompletion},
	{"man", "> FILE", "the manual page: the help of all commands", runMan},
}

func main() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
