// Package clients is a run of several clients, as the front door of each of them drives it: who
// starts the others, what all agree about before a trial, and how their results become one.
//
//	meet.go     where ranks meet that a launcher has started, and what they do until then
//	hosts.go    where ranks are started, on this host and by ssh on others
//	probe.go    which ranks share a filesystem
//	clients.go  Gather, Enter, Publish, Conclude, Leave: a run and its trials, step by step
//	merged.go   one result of all ranks, written beside theirs, and the summary of the run
//	hello.go    who a process is
//
// Every rank runs the same benchmarks in the same order, since all have the same arguments; a trial
// that failed for one of them has failed for all, so that they go on alike. The coordinator alone
// prints, and writes all results, each as soon as it has come.
//
// Gather to Leave are for the goroutine that runs the benchmarks. Config.Cancel and Trial.Save are
// called from others, too.
package clients
