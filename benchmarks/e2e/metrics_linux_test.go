package e2e

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMetricsOfARun: during a run of two ranks the endpoint shows the bytes of both, which grow.
func TestMetricsOfARun(t *testing.T) {
	t.Parallel()
	b := newClients(t)
	p := b.start(b.ranks(2, "-metrics-listen=127.0.0.1:0")...)
	var url string
	eventually(t, "the address of the metrics", func() bool {
		if m := metricsAddress.FindStringSubmatch(p.errout.String()); m != nil {
			url = m[1]
		}
		return url != ""
	})
	written := regexp.MustCompile(`(?m)^kvbench_kv_offload_tiering_write_bytes_total` +
		`\{benchmark="MaxStorageStress",rank="([01])",tier="storage"\} (\S+)$`)
	counters := func() map[string]float64 {
		answer, err := http.Get(url)
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		values := map[string]float64{}
		for _, m := range written.FindAllStringSubmatch(string(text), -1) {
			values[m[1]], err = strconv.ParseFloat(m[2], 64)
			require.NoError(t, err)
		}
		return values
	}
	var first map[string]float64
	eventually(t, "bytes of both ranks", func() bool {
		first = counters()
		return first["0"] > 0 && first["1"] > 0
	})
	eventually(t, "more bytes of both ranks", func() bool {
		next := counters()
		return next["0"] > first["0"] && next["1"] > first["1"]
	})
	http.DefaultClient.CloseIdleConnections()
	require.NoError(t, p.Process.Signal(syscall.SIGINT))
	assert.Equal(t, 130, p.end().code)
	b.nothingLeft(2)
}
