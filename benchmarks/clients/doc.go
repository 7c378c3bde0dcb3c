// Package clients is a run of several clients, as the command line of each of them drives it: what
// starts the others, what all agree about before a trial, and how their results become one.
//
//	meet.go     the address at which ranks meet, starting ranks on this host, refusals
//	clients.go  Gather, Enter, Publish, Conclude, Leave: a run and its trials, step by step
//	share.go    the free space of a filesystem that ranks share
//	merged.go   one result of all ranks, written next to theirs, and the summary of the run
//	hello.go    what identifies a process
//
// Every rank runs the same benchmarks in the same order, since all have the same arguments; a trial
// that failed for one of them has failed for all, so that they go on alike. Rank 0 coordinates. It
// alone prints, and writes all results, each as soon as it has come.
//
// Gather to Leave are for the goroutine that runs the benchmarks. Config.Cancel and Trial.Save are
// called from others, too.
package clients
