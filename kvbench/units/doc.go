// Package units reads and writes sizes, durations, rates and shares as the whole suite does.
//
//	format.go  numbers for people: three digits, binary units, "–" for what is unknown; which
//	           direction of a benchmark line's unit is an improvement
//	parse.go   sizes with binary units and times, as flags and files have them; the word that
//	           somebody may have meant
//
// Everything here is a pure function, and what it prints is pinned by golden files of those who
// print.
package units
