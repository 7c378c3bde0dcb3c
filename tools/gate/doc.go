// Package gate decides whether new benchmark results are worse than old ones by more than a limit,
// and reports how small a loss it could have found.
//
//	turns.go      Turns: runs two commands in the order old new new old and saves their output
//	read.go       reads both sides into a table of package stats, or returns why they cannot be compared
//	limits.go     Limits: the gated metrics and the loss that each may have (-max-regress)
//	judge.go      Judge: a row and a verdict per metric
//	forecast.go   what a gate of more trials will say, and how many trials it needs
//	format.go     the report as text, Markdown, GitHub annotations and JUnit XML
//
// The gate judges the headline metric of each benchmark and the metrics that the user names. If the
// sides differ in a setting, it refuses to compare them.
//
// The reasons for each choice:
//
// Why one-sided? A gain never fails the gate. The claim is "worse by more than the limit", so alpha
// bounds the probability that the gate fails although no metric lost more than its limit; if nothing
// changed, far fewer gates fail. A common other rule is a two-sided test for any difference whose
// estimate also exceeds the limit. At the limit, half of the alarms of that rule are false.
//
// Why ranks? Bandwidths of a shared disk have long tails. In a test of means one slow trial, during a
// neighbour's backup, decides; here it is one rank. Under normal noise the price is 5 % more trials.
//
// Ties? Tied values get their mean rank. P values count all permutations of the ranks (package stats),
// so that coarse metrics keep the level. Above 64 trials a normal distribution with a variance
// corrected for ties is used. If most trials have exactly the same bandwidth, the row is blind unless
// it is worse: the window or a limit decided the value.
//
// Few trials? The smallest p of four against four trials is 1/70, of two blocks 1/36: enough for one or
// two metrics. A metric whose smallest p after the correction is above alpha is "not enough samples"
// and does not pass. This depends only on the number of trials. Four trials find only large losses; the
// column detects says how large.
//
// Drift? Trials are compared only within blocks: old new new old. Linear drift within a block adds the
// same to both sides. With a random walk neighbouring trials are similar, which makes alarms rarer.
// Noise in every second run, or in the second run of a block, hits both sides, because every second
// block has the opposite order. Without blocks drift is not corrected: benchmarks/measurements/gate.md
// shows a machine with three times the promised false alarms. The report says if there are no blocks.
//
// Many metrics? All gated metrics are one family, corrected by Holm: alpha is the probability of any
// false alarm in the gate. A metric with fewer than four trials is not in the family, because it cannot
// alarm. A metric with too few trials for the correction is in it, which lowers the power of the
// others. Metrics of -all are not judged. Pages and workbooks use the same test and correction for the
// headline metrics, but test both directions and have no limit.
//
// Better? As on pages and in workbooks (stats.Change): two-sided, against no change, and only if the
// medians agree. So gate and pages never contradict each other.
//
// Blind? "No loss found" says something only if the gate would find a loss. A row is blind if more than
// one gate in five would miss a loss of twice the limit. The detectable loss is estimated from the
// gate's own trials; with few trials the estimate is rough.
//
// Forecast? A gate that ends blind wastes its time, so turns prints early what the gate will detect, with
// the probability of a decision, and can end there. The probability is that of normal noise that stays as
// it is (Contrast.Outlook of package stats). In simulations as many gates decide as it says; on the
// device of testdata/alternating, which became noisier, fewer. The gate judges all trials as if there
// had been no forecast: an early end gives no answer, so it adds no false alarm.
//
// Pooled settings? Trials with different settings are different rows (package load).
//
// Failed trials? A new version that sometimes fails is worse: new trials without numbers fail the gate.
// If old trials failed, the remaining ones are a biased sample.
//
// A benchmark that is missing on the new side fails the gate: deleting it must not make the gate pass.
//
// simulation_test.go checks false alarms and power and makes the figures of
// benchmarks/measurements/gate.md.
// testdata/alternating is from a real device: forty runs in ten blocks of the same binary, in a file
// on a loop device that a control group held to 400 MiB of reads and 300 MiB of writes a second,
// windows of one second. A script of kvreport judges them.
package gate
