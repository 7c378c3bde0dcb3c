package load

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// seeds are the kinds of input that there are.
func seeds(f *testing.F) {
	for _, pattern := range []string{"testdata/*.txt", "testdata/bpftrace/*.txt",
		"testdata/*.json", "testdata/option_2/*/*/*.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("%s: no seeds: %v", pattern, err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data[:min(len(data), 20<<10)])
		}
	}
	f.Add([]byte(textOf("bssplit_read_kb: 0 3, 4 8 7, 1K 2K 8", "d2c_read_us: 1 4, 8M 16M 1",
		"qd_read: 1M 2M 5")))
	f.Add([]byte("@bssplit_write_kb[a]:\n(..., 0) 3 |@|\n[512, 1K) 4 |@|\n[8000, ...) 1 " +
		"||\n@inflight_write: -7\n@d[1,2]: 3\n"))
	f.Add(
		[]byte(
			`{"kvreport_schema": "1.0", "results": [{"source":"a","name":"X-2","values":[{"unit":"ns/op","value":5},{"unit":"x","value":"NaN"}]}], "units": {"x":{"better":"higher"}}}`))
	f.Add(
		[]byte(
			`{"schema_version":"2.0","status":"complete","summary":{"cache_stats":{"storage_read_p50_ms":1}},"histograms":{"a":{}},"timeline":{}}`))
	f.Add(
		[]byte(
			`{"query_ttft_per_prompt":1,"query_round_time_per_prompt":"2","x":{"y":[1],"z":null}}`))
	f.Add(
		[]byte(
			`{"requests_completed":1,"summary":{},"device_latency_tracing":{"qd_read":{"buckets":[{"range_us":[1,2],"count":3}]}}}`))
}

// FuzzRead feeds every reader: the first bytes of the input choose the reader. A text of bpftrace that is
// read makes a job of fio.
func FuzzRead(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		list, _, _ := All([]string{"-"}, Options{Stdin: bytes.NewReader(data), Warn: func(error) {},
			Bpftrace: true, Engines: new([]Engine)})
		for _, r := range list {
			r.Lookup("summary.cache_stats.x")
			r.Parameter("x")
			r.Tracing()
			require.NoError(t, WriteDocument(io.Discard, []*Record{r}, nil))
			for _, window := range []time.Duration{0, 1, time.Minute} {
				if r.Bpftrace != nil {
					distilled(t, r.Bpftrace, window, "x")
				}
			}
		}
	})
}
