// Package merge makes one result of the results of a trial's ranks.
//
//	merge.go       Ranks: the ranks of a trial → one result; warnings, histograms, status
//	walk.go        fields, by the merge tags that package result gives them
//	devices.go     each device once; the verdict of the ranks together
//	window.go      when the windows opened; what the ranks moved while all of them measured
//	timeline.go    bytes over time on one axis
//	checkpoint.go  checkpoints of which each rank has moved a part
//	settings.go    the settings that decide what numbers mean: results that differ in one are never
//	               compared, added up or averaged
//	tree.go        the results of a directory by option, trial and rank
//	parse.go       result files, ours and the Python benchmark's, with the line of an error
//	summary.go     Aggregate: sums over ranks, means over trials, the schema of summary.json
//	option.go      one option or benchmark of it
//	summary_text.go  the summary as JSON and as text
//
// The result of a rank holds what the rank counted: counters, encoded histograms, the timeline, the
// window and the offset of its clock. Merging adds these, and [result.Result.Complete] derives the
// rest from the sums, as it does for one client, so that no formula is written twice. Ranks share a
// device and a moment, so they are no trials of their own: statistics count merged results. Rates
// add up, as MLPerf Storage's aggregation adds them: each rank's bytes over its own window.
// Latencies are those of all operations together. What one rank alone can know (what an
// autoscaler found, a share of a window) is absent where there are several: a mean of it would be a
// number that no rank measured. The verdict is judged from the sums.
//
//	                      rank 0     rank 1     the trial
//	read bandwidth        2 GiB/s    3 GiB/s    5 GiB/s
//	window                60.1 s     60.3 s     60.3 s
//	hits                  3 of 10    6 of 13    9 of 23
//	read p95              of 900     of 1,200   of the 2,100 reads together
//	peak memory           80 MiB     95 MiB     95 MiB, the largest process
//	filesystem            xfs        xfs        xfs
//	cache directory       …/rank_0   …/rank_1   absent
//	seed                  42         43         42, the smallest
//	ceiling, autoscaler   its own    its own    absent
//	checkpoint            0.61 s     0.64 s     0.64 s, the slowest accelerator's
//
// A trial from which a rank is missing is merged, too, and is incomplete, with an error that names
// the rank: its sums are those of fewer clients and no sample of the trial.
//
// Everything is a function of its arguments, which it does not change; the result may share lists
// and maps with them.
package merge
