// Package params holds every parameter of the suite exactly once and decides which value is in
// force. In reading order:
//
//	parameters.txt  the parameters; keys.txt: the other keys of the YAML file
//	benchmarks.txt  the benchmarks, and what each sets; profiles.yaml: what -profile sets
//	rules.txt       the rules that tie parameters together, and when a benchmark skips
//
//	table     reads the lines and sets their fields; kinds: what a parameter may be
//	bench     divisions, benchmarks and profiles; values: what is in force, and what follows from it
//	layers    where a value came from: the division's default, benchmark, profile, engine, layout,
//	          launcher, file, environment, flag or sweep; a later one in this list wins
//	resolve   all of that in order; file: the YAML file; flags: flags and environment
//	applies   to which benchmarks a parameter applies, and what is reported about others
//	rules     reads rules.txt: most rules are rows there; check: the rules that calculate, with closed,
//	          checkpoint, engine, launch and roots; objects and device: their own texts
//	estimate  what fits this machine; help: -help-parameters and the reference
//
// This package is large because a line of the table ties a parameter's flag, field, limits, key and
// rules to each other: cut in two, each half would need the other's table.
//
// [Set.Resolve] reports every violation at once ([Violations]) and touches nothing: it reads the
// YAML file and a model's config.json, and looks whether trace files exist.
//
// A Set and a Values are not safe for concurrent modification; Resolve may be called any number of
// times on one Set, and a resolved Values is plain data that may be read from anywhere.
package params
