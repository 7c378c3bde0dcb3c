// Package gate decides whether new benchmark results are worse than old ones by more than is
// allowed, and says so only when the samples can carry the claim.
//
//	read.go    both sides → one table of package stats
//	limits.go  which metrics are gated, and what each may lose: -max-regress
//	judge.go   Judge: refusals, rows, verdicts
//	format.go  the report as text, Markdown and annotations of GitHub
//
// An alarm needs both: the medians differ significantly (Mann-Whitney test, Holm's correction over
// everything that is gated), and the new one is worse by more than the metric's limit. The first
// alone would call a loss of 0.1 % that a thousand samples prove a failure; the second alone would
// call the noise of a shared disk one. Which direction is worse, the Unit lines of the input say.
//
// Gated are the headline of each benchmark and what is named. With samples too few to reach alpha,
// whatever the difference, a row is "not enough samples" and fails too, with the number that would
// do: a gate that cannot find anything must not look like one that found nothing. A benchmark that
// is gone fails as well, since deleting it is the easiest way to pass.
//
// Sides that differ in a setting are refused before any number is compared: their numbers answer
// different questions.
//
// Runs of the same hour share their disturbances, which no test can tell from a loss: old and new
// are to be run in turns (make gate does).
//
// simulation_test.go holds the rates of false alarms and of losses found to what is promised.
package gate
