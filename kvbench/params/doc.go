// Package params holds every parameter of the suite exactly once and decides which value is in
// force.
//
// From one table come the flags ([Register]), the environment names (KVBENCH_ + the name in
// capitals, _ for -), the section `parameters:` of a YAML file, the keys of -sweep, the closed
// division's rules and the table that -help-parameters prints. In reading order:
//
//	parameters.txt   every parameter: name, default per division, meaning; parameter: a row of it
//	kinds     what a parameter may be, a flag.Value on its field; device: the simulated drive
//	bench     divisions, and what each benchmark sets
//	values    the values in force, and what follows from them
//	table     binds the rows to fields, kinds and limits; keys (keys.txt): the other keys of the YAML file
//	profiles  what -profile sets
//	heard     which benchmarks hear a parameter, and what is said about one that none does
//	flags     flags, environment names, -help-parameters
//	origin    where a value came from, and what is said about one that cannot be used
//	file      the YAML file
//	resolver  the layers: -sweep > flag > environment > YAML file > layout and engine >
//	          benchmark ([Bench]) > division
//	launch    rank and ranks; sweep: combinations; estimate: what fits this machine
//	checkpoint  those of checkpoints and of the streams of their files
//	engine    inference engines: what they and their layouts set, and cannot be told
//	check     rules that tie parameters together; closed: what the closed division requires
//	resolve   all of that in order
//
// This package is large because a row of the table binds a parameter's flag, field, limits, key and
// rules to each other: cut in two, each half would need the other's table.
//
// [Set.Resolve] reports every violation at once ([Violations]) and touches nothing: it reads the
// YAML file and a model's config.json, and asks whether trace files exist.
//
// A Set and a Values are not safe for concurrent modification; Resolve may be called any number of
// times on one Set, and a resolved Values is plain data that may be read from anywhere. It must not
// be copied: its table is bound to its fields.
package params
