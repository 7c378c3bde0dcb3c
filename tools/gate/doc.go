// Package gate decides whether new benchmark results are worse than old ones by more than a limit,
// and reports how small a loss it could have found.
//
//	turns.go   Turns: runs two commands old new new old, and keeps what they print
//	read.go    both sides → one table of package stats, or the reasons why they cannot be compared
//	limits.go  which metrics are gated, and what each may lose: -max-regress
//	judge.go   Judge: rows, verdicts
//	format.go  the report as text, Markdown, annotations of GitHub and JUnit's XML
//
// The gate judges the headline metric of each benchmark and the metrics that are named. Sides that
// differ in a setting are refused before any number is compared: their numbers answer different
// questions.
//
// The reasons for each choice:
//
// Why one-sided? A gain never fails the gate. The claim is "worse by more than the limit", so alpha
// bounds the share of gates that fail although no metric lost more than is allowed; without any
// change far fewer fail. Gates often use another rule: a test for any difference, whose estimate
// also exceeds the limit. That rule bounds nothing at the limit, where half of its alarms are
// false.
//
// Why ranks? Bandwidths of a shared disk have tails that no test of means survives: a trial during
// a neighbour's backup is one rank, however slow it was. The price under normal noise is 5 % more
// trials.
//
// Ties? P values are computed from ranks, with the mean rank for ties, counted over all
// permutations (package stats), so that coarse metrics get the promised level. Above 64 trials the
// normal distribution is used, with the variance corrected for ties. A bandwidth that is equal to
// the byte in most trials is underpowered whatever p says: the window decided it.
//
// n = 4? The least p of four against four is 1 of 70, of two blocks 1 of 36: enough for one or two
// metrics. A metric that cannot get below alpha after the correction is "not enough samples" and no
// pass; that depends on counts alone, never on values. Four trials find large losses only: the
// column sees shows how large.
//
// Drift? Trials are compared within blocks alone, old new new old. Linear drift within a block adds
// the same to both sides. A random walk makes neighbours alike, which shrinks the difference of the
// sides more than chance, so alarms get rarer. Noise in every second run, or in the second run of a
// block, hits both sides in blocks of the other order. Without blocks nothing helps:
// benchmarks/measurements/gate.md shows a machine that alarms three times as often as it should. The
// gate reports it.
//
// Many metrics? All gated metrics are one family, corrected by Holm: the chance of one false alarm
// in the whole gate is alpha. A metric with fewer than four trials is no member, which hides
// nothing: it cannot alarm. A metric with too few for the correction is a member, which lowers the
// power of the others. Metrics that -all adds are not judged. Pages and workbooks use the same test
// and correct the headline metrics in the same way; they have no limit, and test both directions.
//
// Better? The same test as on pages and in workbooks (stats.Change): in both directions, against
// zero, and only where the two medians agree. So they never contradict each other.
//
// Blind? "No loss found" has a meaning only where the gate would have found one. A row is blind
// when more than one gate in five would pass twice the limit. The detectable loss is an estimate
// from the gate's own trials; with few trials it is a rough one, and the figures show how rough.
//
// Pooled settings? Trials with other settings are other rows, and never one sample (package load).
//
// Failed trials? A candidate that dies now and then is worse than one that does not: new trials
// without numbers fail the gate. Old trials that failed leave a biased choice of the others.
//
// A benchmark that the new side lacks fails the gate, since deleting it is the easiest way to pass.
//
// simulation_test.go checks false alarms and power and makes the figures of
// benchmarks/measurements/gate.md.
// testdata/alternating is from a real device: forty runs in ten blocks of the same binary, in a file
// on a loop device that a control group held to 400 MiB of reads and 300 MiB of writes a second,
// windows of one second. A script of kvreport judges them.
package gate
