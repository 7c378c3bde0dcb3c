// Package convert writes block traces of any known format as Mooncake's JSON lines, which other
// replayers read.
//
//	convert.go  Options and Run: traces → JSON lines, and what was lost on the way
//
// Rows come in the order and at the times of a replay (package workloads/traces), with ids that
// mean the same in the whole file. What the lines cannot say is lost and told: sessions and their
// agents become requests at their recorded times.
package convert
