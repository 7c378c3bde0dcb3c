package benchmarks

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tools/golden"
)

// snapshot is one of a load that has moved so many MiB.
func snapshot(mib int64) kvbench.Snapshot {
	s := kvbench.Snapshot{Stage: "running", Elapsed: 3 * time.Second / 2, Queued: 3, InFlight: 4,
		Free: 1 << 40, Tiers: []cache.Gauge{{Level: tiers.CPU, Capacity: 1 << 30, Used: 1 << 29,
			Entries: 16}, {Level: tiers.Storage, Capacity: 1 << 33, Used: 1 << 31, Entries: 64}}}
	s.Live.Bytes[tiers.Storage] = [tiers.NumOps]int64{tiers.Read: mib << 20, tiers.Write: mib << 19}
	s.Live.IO[tiers.Storage][tiers.Read] = record.LiveIO{Requests: mib,
		InFlight: time.Duration(mib) * time.Millisecond}
	s.Live.Evicted[tiers.Storage] = 2
	s.Live.Requests, s.Live.Tokens = 7, 70
	s.Live.PromptTokens, s.Live.FoundTokens = 1000, 250
	return s
}

// example has two ranks of one benchmark, and another benchmark that is over.
func example() *metricsServer {
	s := &metricsServer{series: map[origin]*series{}}
	s.observe("StorageCeiling/op=read", 0, 0, snapshot(100))
	s.idle()
	s.observe("MultiTurn", 0, 0, snapshot(8))
	s.observe("MultiTurn", 0, 1, snapshot(9))
	s.observe("MultiTurn", 1, 0, snapshot(2)) // its second trial goes on from the first
	return s
}

const openMetrics = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"

// text is the answer to a scrape of a client that accepts OpenMetrics.
func text(s *metricsServer) string {
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", openMetrics)
	w := httptest.NewRecorder()
	s.handler(`1.0 "quoted"`).ServeHTTP(w, r)
	return w.Body.String()
}

// TestText pins the names, labels and units of all metrics.
func TestText(t *testing.T) { golden.Check(t, "openmetrics.txt", text(example())) }

// value is that of the line which begins so.
func value(t *testing.T, text, begin string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, begin); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// TestCountersNeverFall: not by a stage that counts nothing, not by a new trial, and at a trial's
// end they are those of its result.
func TestCountersNeverFall(t *testing.T) {
	s := &metricsServer{series: map[origin]*series{}}
	read := func() string {
		return value(t, text(s), `kvbench_kv_offload_tiering_read_bytes_total`+
			`{benchmark="B",rank="0",tier="storage"}`)
	}
	s.observe("B", 0, 0, snapshot(4))
	assert.Equal(t, "4.194304e+06", read())
	s.observe("B", 0, 0, kvbench.Snapshot{Stage: "removing the trial's files", Free: -1})
	assert.Equal(t, "4.194304e+06", read())
	r := &result.Result{Requests: result.RequestTotals{Completed: 9}, Tiers: []result.Tier{{Level: "storage",
		Read: result.TierTraffic{Bytes: 5 << 20}}}}
	s.ended("B", r)
	s.ended("B", &result.Result{MergedRanks: []int{0, 1}, Requests: result.RequestTotals{Completed: 1e6}})
	s.idle()
	assert.Equal(t, "5.24288e+06", read())
	s.observe("B", 1, 0, kvbench.Snapshot{Stage: "filling", Free: -1})
	assert.Equal(t, "5.24288e+06", read())
	s.observe("B", 1, 0, snapshot(1))
	assert.Equal(t, "6.291456e+06", read())
	assert.Equal(t, "16.0", value(t, text(s),
		`kvbench_request_success_total{benchmark="B",rank="0"}`))
}

// TestEndpoint: it answers while it is open, in the format that the client accepts, and is gone when it
// is closed.
func TestEndpoint(t *testing.T) {
	s, err := listenMetrics("127.0.0.1:0")
	require.NoError(t, err)
	_, err = listenMetrics(s.listener.Addr().String())
	assert.ErrorContains(t, err, "give another port, or 0")
	s.observe("B", 0, 0, snapshot(1))
	get := func(accept string) (kind, body string) {
		r, err := http.NewRequest(http.MethodGet, s.url(), nil)
		require.NoError(t, err)
		r.Header.Set("Accept", accept)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.Header.Get("Content-Type"), string(text)
	}
	kind, body := get(openMetrics)
	assert.Contains(t, kind, "application/openmetrics-text; version=1.0.0; charset=utf-8")
	assert.True(t, strings.HasSuffix(body, "\n# EOF\n"))
	kind, body = get("text/plain")
	assert.Contains(t, kind, "text/plain; version=0.0.4; charset=utf-8")
	assert.NotContains(t, body, "EOF")
	http.DefaultClient.CloseIdleConnections()

	// A client that says nothing more does not hold the end.
	silent, err := net.Dial("tcp", s.listener.Addr().String())
	require.NoError(t, err)
	defer silent.Close()
	_, _ = io.WriteString(silent, "GET /metrics HTTP/1.1\r\n")
	_ = s.close()
	_, err = bufio.NewReader(silent).ReadByte()
	assert.Error(t, err)
	_, err = net.Dial("tcp", s.listener.Addr().String())
	assert.Error(t, err)

	var none *metricsServer
	none.observe("B", 0, 0, snapshot(1))
	none.ended("B", &result.Result{})
	none.idle()
	assert.NoError(t, none.close())
}

// TestDashboard: Grafana's file shows metrics that there are, and nearly all of them.
func TestDashboard(t *testing.T) {
	dashboard, err := os.ReadFile("../testdata/grafana-kvbench.json")
	require.NoError(t, err)
	shown := text(example())
	drawn := map[string]bool{}
	metric := regexp.MustCompile(`kvbench_[a-z_]+`)
	for _, name := range metric.FindAllString(string(dashboard), -1) {
		drawn[name] = true
		assert.Contains(t, shown, "\n"+name+"{", name)
	}
	assert.Greater(t, len(drawn), 14)
}
