// Package params defines every parameter of kvbench exactly once, and decides which value is in force. In
// reading order:
//
//	parameters.txt  the parameters; keys.txt: the other keys of the YAML file
//	benchmarks.txt  the benchmarks, and what each sets; profiles.yaml: what -profile sets
//	rules.txt       the rules about several parameters, and when a benchmark is skipped
//
//	table     reads the lines of these files and sets fields; kinds: the types and limits of parameters
//	bench     divisions, benchmarks and profiles; values: the values in force, and what follows from them
//	layers    the origin of a value: the division's default, benchmark, profile, engine, layout,
//	          launcher, scenario, file, environment, flag or sweep; a later origin in this list wins
//	resolve   reads all origins in this order; scenario: the jobs of -scenario; file: the YAML file of
//	          -config; flags: flags and environment
//	applies   to which benchmarks a parameter applies, and the report about a parameter that does not apply
//	rules     reads rules.txt, which has most rules; check: the rules that need a calculation, and closed,
//	          checkpoint, engine and launch; objects and device: the settings of object stores and
//	          of simulated devices
//	estimate  what fits this machine; help: -help-parameters
//
// This package is large, because a line of the table has the flag, the field, the limits, the key and the
// rules of a parameter. If the package were divided, each half would need the table of the other half.
//
// [Set.Resolve] reports all violations together ([Violations]). It changes no file: it reads the YAML file
// and a model's config.json, and checks whether trace files exist.
//
// A Set and a Values are not safe for concurrent modification. Resolve may be called any number of times on
// one Set. A resolved Values is plain data, which any goroutine may read.
package params
