// Package params holds every parameter of the suite exactly once and decides which value is in force.
//
// The table (table.go) gives each parameter its name, kind, limits, default per division, help line and field of [Values].
// From that one table come the flags ([Register]), the environment names (KVBENCH_ + the name in capitals, _ for -), the
// section `parameters:` of a YAML file, the keys of -sweep, the closed division's rules and the table that
// -help-parameters prints.
//
// Which value wins: -sweep > flag > environment > YAML file > benchmark ([Bench]) > division. The winner's [Origin] is kept.
// [Set.Resolve] reports every violation at once ([Violations]) and touches nothing: it reads the YAML file and a model's
// config.json, and asks whether trace files exist.
//
// A Set and a Values are not safe for concurrent modification; Resolve may be called any number of times on one Set, and a
// resolved Values is plain data that may be read from anywhere.
package params
