// Package units parses and formats sizes, durations, rates and shares.
//
//	format.go  numbers for people: three digits, binary units, "–" for unknown; also of
//	           values of benchmark lines
//	parse.go   sizes with binary units and times, as flags and files have them; the nearest
//	           known word for a misspelled one
//
// All functions are pure. Golden files of the packages that print check the output.
package units
