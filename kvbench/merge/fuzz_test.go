package merge

import (
	"encoding/json"
	"testing"
)

// FuzzAggregate holds that no result file, however odd, panics the reader or the sums.
func FuzzAggregate(f *testing.F) {
	good, err := json.Marshal(res(0, 1, example[0][1]))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte(`{"summary": {"cache_stats": {"storage_entries": 15}}}`))
	f.Add(
		[]byte(
			`{"schema_version": "2.0", "status": "complete", "window_ns": -1, "start_time": "2026-09-08T12:00:00Z",
		"timeline": {"interval_ns": 1, "last_interval_ns": 0, "read_bytes": {"storage": [1, 2]}},
		"histograms": {"storage_read_device": {"encoding": "hdr-v2-deflate-base64", "data": "x", "count": -1}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, _, err := Parse("x.json", data)
		if err != nil || r == nil {
			return
		}
		if r.Ranks > 100 || r.Count > 100 || r.Rank > 100 || r.Trial > 100 || r.Rank < 0 ||
			r.Trial < 0 {
			return // refused before
		}
		files := &Tree{Files: []File{{Group: "1", Trial: r.Trial, Rank: r.Rank,
			Path: "option_1/trial_0/rank_0/kvcache_results_x.json", Result: r,
			Keys: r.Python()}}}
		_ = Aggregate(files).Stamp()
	})
}
