// Package convert writes block traces of any known format as Mooncake's JSON lines, which other
// replayers read.
//
//	convert.go  Options and Run: traces → JSON lines, and what was lost on the way
//
// Rows come in the order and at the times of a replay (package workloads/traces), with ids that
// mean the same in the whole file. Sessions and their agents become requests at their recorded
// times, because the lines have no field for a session; Run reports the loss.
package convert
