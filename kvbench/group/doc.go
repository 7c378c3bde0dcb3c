// Package group is the clients of one run: who they are, a barrier at which they begin
// together, and a way to bring their results to one of them.
//
//	group.go  Group; Alone, the group of one
//
// Only Alone exists: today's ranks start by themselves and their results are merged from
// files. A group of several clients is another implementation of the interface.
package group
