// Package params holds every parameter of the suite exactly once and decides which value is in
// force.
//
// From one table come the flags ([Register]), the environment names (KVBENCH_ + the name in
// capitals, _ for -), the section `parameters:` of a YAML file, the keys of -sweep, the closed
// division's rules and the table that -help-parameters prints. In reading order:
//
//	parameters.txt   every parameter: name, default per division, what it means
//	table     binds them to fields, kinds and limits
//	kinds     what a parameter may be: each is a flag.Value on its field
//	values    the values in force, and what follows from them
//	bench     divisions, and what each benchmark sets
//	flags     flags, environment names, -help-parameters
//	resolve   the layers: -sweep > flag > environment > YAML file > benchmark ([Bench]) > division
//	origin    where a value came from, and what is said about one that cannot be used
//	file      the YAML file; keys: what may stand in it beside parameters (accepted.txt: in vain)
//	check     rules that tie parameters together, estimate: what fits this machine
//	closed    what the closed division requires
//	launch    rank and ranks; sweep: combinations; device: the drive of -simulate-device
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
