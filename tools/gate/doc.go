// Package gate decides whether new benchmark results are worse than old ones by more than is
// allowed, and says what it could have seen.
//
//	turns.go   Turns: runs two commands old new new old, and keeps what they print
//	read.go    both sides → one table of package stats, and why they cannot be compared
//	limits.go  which metrics are gated, and what each may lose: -max-regress
//	judge.go   Judge: rows, verdicts
//	format.go  the report as text, Markdown, annotations of GitHub and JUnit's XML
//
// Gated are the headline of each benchmark and what is named. Sides that differ in a setting are
// refused before any number is compared: their numbers answer different questions.
//
// Each choice is one that somebody may attack:
//
// Why one-sided? Nobody is to be stopped for a gain. The claim is "worse by more than the limit",
// so that alpha bounds the gates that fail although no metric lost more than is allowed; without
// any change far fewer do. A test for a difference of which the estimate also exceeds the limit,
// as gates often have it, bounds nothing at the limit, where half of its alarms are false.
//
// Why ranks? Bandwidths of a shared disk have tails that no test of means survives: one trial
// beside a neighbour's backup is one rank, however slow it was. The price under normal noise is
// a twentieth of the trials.
//
// Ties? P values are of the ranks as they are, ties with their mean, counted over all ways to deal
// them out (package stats), so that coarse metrics get the level that they are promised. More than
// 64 trials are taken from the normal distribution, whose variance knows the ties. A bandwidth that
// most trials have to the byte is blind whatever p says: what decided it is the window.
//
// n = 4? The least p of four against four is 1 of 70, of two turns 1 of 36: enough for a claim or
// two. What could not be below alpha after the correction is "not enough samples" and no pass, and
// its number comes from counts alone, never from values. Four trials that can say something see
// little: sees tells.
//
// Drift? Trials are compared within turns alone, old new new old. What drifts evenly within a turn
// adds the same to both sides; a walk makes neighbours alike, which shrinks the difference of sides
// more than chance expects, so that alarms get rarer. What hits every second run, or the second of
// a turn, hits both sides in turns of the other order. Without turns nothing helps: the figures in
// tools/README.md show a machine that alarms three times as often as it should. The gate says so.
//
// Many metrics? One family of all that is gated, by Holm: the chance of one false alarm in the
// whole gate is alpha. What has fewer than four trials is no member, which hides nothing: it cannot
// alarm. What has too few for the correction is one, at a cost to the power of the others.
// What is shown with -all is not judged. Pages and workbooks compare with the same test and correct
// the headline metrics in the same way; they have no limit, and test both directions.
//
// Better? The test that pages and workbooks make (stats.Change): in both directions, above nothing,
// and only where the two medians say the same. So one of them never contradicts the other.
//
// Blind? That no loss was found means something where a loss would have been found. A row of which
// twice the limit passes in more than one of five gates is blind. What a gate sees comes from its
// own trials: it is an estimate, of few trials a rough one, and the figures say how rough.
//
// Pooled settings? Trials with other settings are other rows, and never one sample (package load).
//
// Failed trials? A candidate that dies now and then is not as good as one that does not: new trials
// without numbers fail the gate. Of old ones those that are left are a choice that luck made.
//
// A benchmark that is gone fails, since deleting it is the easiest way to pass.
//
// simulation_test.go holds false alarms and power to what is promised and makes the figures of
// tools/README.md; testdata/alternating has what a real device did: forty runs in ten
// turns of one and the same binary, in a file on a loop device that a control group held to 400 MiB
// of reads and 300 MiB of writes a second, windows of one second
// (TestGatesOfARealDeviceDoWhatTheySay).
package gate
