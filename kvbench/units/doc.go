// Package units reads and writes sizes, durations, rates and shares as the whole suite does.
//
//	parse.go      sizes with binary units and times, as flags and files have them
//	nearest.go    the word that somebody may have meant
//	format.go     numbers for people: three digits, binary units, "–" for what is unknown
//	directions.go which direction of a benchmark line's unit is an improvement
//
// Everything here is a pure function.
package units
