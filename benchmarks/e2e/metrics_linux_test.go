package e2e

import (
	"io"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMetricsOfARun: while a run of two ranks lasts, whoever asks sees both of them move bytes, and
// more the next time; with the run the endpoint is gone.
func TestMetricsOfARun(t *testing.T) {
	t.Parallel()
	b := newClients(t)
	p := b.start(b.ranks(2, "-metrics-listen=127.0.0.1:0")...)
	var url string
	address := regexp.MustCompile(`metrics until the run ends: (http://127\.0\.0\.1:\d+/metrics)`)
	eventually(t, "the address of the metrics", func() bool {
		if m := address.FindStringSubmatch(p.errout.String()); m != nil {
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
	at, err := netip.ParseAddrPort(regexp.MustCompile(`[\d.]+:\d+`).FindString(url))
	require.NoError(t, err)
	socket := listening(t)[at.Port()]
	require.NotEmpty(t, socket)
	require.NoError(t, p.Process.Signal(syscall.SIGINT))
	assert.Equal(t, 130, p.end().code)
	// By its number: another test may have the port by now.
	for port, other := range listening(t) {
		assert.NotEqual(t, socket, other, port)
	}
	b.nothingLeft(2)
}

// listening are the sockets of this host at which somebody listens, by port: as the kernel numbers
// them (proc_net_tcp(5)).
func listening(t *testing.T) map[uint16]string {
	t.Helper()
	text, err := os.ReadFile("/proc/net/tcp")
	require.NoError(t, err)
	found := map[uint16]string{}
	for line := range strings.Lines(string(text)) {
		// number, local and remote address, state, queues, timer, retransmits, user, timeout, inode
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[3] != "0A" {
			continue
		}
		_, port, _ := strings.Cut(fields[1], ":")
		n, err := strconv.ParseUint(port, 16, 16)
		require.NoError(t, err)
		found[uint16(n)] = fields[9]
	}
	return found
}

// TestMetricsAreServedHereOnly: a port that others reach is refused before anything is made.
func TestMetricsAreServedHereOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	args := append(append(b.micro(), b.places()...), "-test.bench=MaxStorageStress")
	o := b.run(append(args, "-metrics-listen=:9464")...)
	assert.Equal(t, exitParameters, o.code)
	assert.Contains(t, o.stderr, "without -metrics-remote: others could read what is measured")
	assert.NoDirExists(t, b.cache)
	assert.NoDirExists(t, b.results)
}
