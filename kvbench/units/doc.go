// Package units reads and writes sizes, durations, rates and shares as the whole suite does.
//
//	format.go  numbers for people: three digits, binary units, "–" for what is unknown; also of
//	           values of benchmark lines
//	parse.go   sizes with binary units and times, as flags and files have them; the nearest
//	           known word for a misspelled one
//
// Everything here is a pure function. Golden files of the packages that print check the output.
package units
