// Package merge merges the results of a trial's ranks into one result.
//
//	merge.go       Ranks: the ranks of a trial → one result; warnings, histograms, status
//	walk.go        fields, by the merge tags that package result gives them
//	devices.go     each device once; the verdict of all ranks
//	timeline.go    when the windows opened; bytes over time on one axis; what the ranks moved while all of
//	               them measured
//	checkpoint.go  checkpoints of which each rank moved a part
//	settings.go    the settings that decide what numbers mean: results that differ in one are never
//	               compared, added up or averaged
//	tree.go        the results of a directory by option, trial and rank
//	parse.go       result files of kvbench and of the Python benchmark, with the line of an error
//	summary.go     Aggregate: sums over ranks, means over trials; summary.json, and its text
//
// The result of a rank has what the rank counted: counters, encoded histograms, the timeline, the
// window and the clock offset. Ranks adds the counts. [result.Result.Complete] derives the other
// values from the sums, as it does for one rank, so each formula exists once. Ranks share a device
// and run at the same time, so they are not separate trials: statistics count merged results. Rates
// are added, as MLPerf Storage's aggregation adds them: each rank's bytes over its own window.
// Latency distributions have the operations of all ranks. A value that only one rank can know (what
// an autoscaler found, a share of a window) is absent from a merged result: no rank measured its
// mean. The verdict is computed from the sums.
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
// A trial without one of its ranks is merged, too. Its status is incomplete, and its error names
// the missing rank: its sums are those of fewer ranks, so it does not count as a trial.
//
// Functions that merge do not change their arguments. A merged result may share slices and maps
// with them.
package merge
