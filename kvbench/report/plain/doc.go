// Package plain is what a summary says of loads without requests.
//
//	plain.go  Lines: what plain I/O covered, how its number in flight was found, what removal cost
//	knee.go   Knee: where more in flight brings nothing, in the settings of engines
package plain
