package e2e

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers/objecttier/s3double"
)

// keyID is the one that documents of AWS use.
const keyID = "AKIAIOSFODNN7EXAMPLE"

// onObjects makes a bench that runs on an object store at these URLs.
func onObjects(t *testing.T, urls []string, secret, token string) (b *bench, flags []string) {
	t.Helper()
	b = newBench(t)
	b.cache = "s3://bucket/kv"
	for i, v := range b.env { // whatever store the environment names
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") ||
			strings.HasPrefix(name, "S3_") {
			b.env[i] = "IGNORED="
		}
	}
	b.env = append(b.env, "AWS_ACCESS_KEY_ID="+keyID, "AWS_SECRET_ACCESS_KEY="+secret)
	if token != "" {
		b.env = append(b.env, "AWS_SESSION_TOKEN="+token)
	}
	return b, append(b.micro(), "-s3-endpoint", strings.Join(urls, ","))
}

// A run tells exactly what its store has seen: every request, and every byte of an object. One
// request in a hundred fails at first.
func TestObjectsAreThoseOfTheAccessLog(t *testing.T) {
	endToEnd(t)
	d := s3double.Start(t, s3double.Config{Buckets: []string{"bucket"}, AccessKey: keyID,
		Rules: []s3double.Rule{{Key: "/[0-9a-f]{2}/", Share: 0.01, Attempt: 1,
			Fault: s3double.Fault{Kind: s3double.Status, Status: 503}}}}, 2)
	b, flags := onObjects(t, d.URLs(), "secret", "")
	// What is kept is not deleted behind the result, which does not know of that.
	b.ok(append(append(flags, b.places()...), "-test.bench", "MaxStorageStress", "-test.benchtime",
		"100x", "-s3-lookup", "head", "-keep-files")...)
	r := theResult(t, b.results)
	require.NotNil(t, r.Objects)
	type logged struct{ requests, bytes int64 }
	have, want := map[string]logged{}, map[string]logged{}
	add := func(name string, c result.ObjectCounts) {
		if name == "get_range" {
			name = "get"
		}
		if n := have[name]; name != "connect" {
			have[name] = logged{n.requests + c.Attempts - c.Unsent, n.bytes + c.Bytes}
		}
	}
	for name, n := range r.Objects.Operations {
		add(name, n.ObjectCounts)
	}
	cut := map[string]bool{}
	for name, n := range r.Objects.Outside {
		add(name, n)
		cut[name] = n.Cancelled > 0
	}
	log := d.Log()
	isMarker := func(e s3double.Entry) bool {
		return e.Op == s3double.Put && strings.HasSuffix(e.Key, "/.kvbench.json")
	}
	made := slices.IndexFunc(log, func(e s3double.Entry) bool {
		return isMarker(e) && e.Code == ""
	})
	require.GreaterOrEqual(t, made, 0)
	// Behind the result the marker says that the run has left its objects.
	last := len(log) - 1
	require.True(t, isMarker(log[last]), log[last])
	for _, e := range log[:last] {
		if strings.Contains(e.Key, ".kvbench-proof-") {
			continue
		}
		name, moved := string(e.Op), e.BytesIn
		switch {
		case e.Op == s3double.Get && e.Code == "":
			moved = e.BytesOut
		case e.Op == s3double.Versioning:
			name, moved = "bucket", 0
		case e.Op == s3double.ListUploads:
			name, moved = "list", 0
		case e.Status == 412: // the marker, which was sent and not read
			moved = log[made].BytesIn
		case e.Op != s3double.Put && e.Op != s3double.PutPart:
			moved = 0
		}
		n := want[name]
		want[name] = logged{n.requests + 1, n.bytes + moved}
	}
	for name := range want {
		if cut[name] { // the store may not have heard of it, nor taken all of it
			assert.GreaterOrEqual(t, have[name].requests, want[name].requests, name)
			continue
		}
		assert.Equal(t, want[name], have[name], name)
	}
	assert.NotZero(t, r.Objects.Retries["503"])
	assert.NotZero(t, r.Objects.Operations["get"].Requests)
	assert.Equal(t, "s3", r.IO.Mode)
	assert.Nil(t, r.DeviceWitness.ReadBytes)
	assert.Contains(t, r.DeviceWitness.Reason, "object store")
	if n := r.Network; n.ReceivedBytes != nil {
		assert.Greater(t, *n.ReadRatio, 0.95)
	}
	var sum int64
	for _, e := range r.Endpoints {
		sum += e.Requests
		assert.InDelta(t, 0.5, float64(e.Requests)/float64(r.Endpoints[0].Requests+
			r.Endpoints[1].Requests), 0.02, e.URL)
	}
	for name, n := range r.Objects.Operations {
		if name != "connect" {
			sum -= n.Requests
		}
	}
	assert.InDelta(t, 0, sum, 64, "but for those that were under way at an edge")
}

// No 8 characters of a secret are anywhere in what a run prints or writes, whatever happens: a
// store that quotes it, a key that is wrong, a process that is killed with all its stacks.
func TestSecretsAreNowhere(t *testing.T) {
	endToEnd(t)
	for _, length := range []int{8, 40, 1000} {
		secret, token := letters(length), letters(max(length, 40))
		d := s3double.Start(t, s3double.Config{Buckets: []string{"bucket"}, AccessKey: keyID,
			SecretKey: secret, Token: token,
			Rules: []s3double.Rule{{Key: "/[0-9a-f]{2}/", Share: 0.01, Attempt: 1,
				Fault: s3double.Fault{Kind: s3double.Status, Status: 500, Message: secret}}}}, 1)
		html := s3double.Start(t, s3double.Config{Buckets: []string{"bucket"}, AccessKey: keyID,
			SecretKey: secret, Token: token,
			Rules: []s3double.Rule{{Fault: s3double.Fault{Kind: s3double.HTML, Status: 200,
				Message: "<title>" + secret + "</title>"}}}}, 1)
		closed, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		nobody := "http://" + closed.Addr().String()
		require.NoError(t, closed.Close())
		for _, c := range []struct {
			name, url, cache string
			secret, token    string
			more             []string
			says             string // "": it succeeds
			signal           syscall.Signal
		}{
			{name: "good"},
			{name: "wrong secret", secret: letters(length), says: "AWS_SECRET_ACCESS_KEY"},
			{name: "wrong token", token: letters(100), says: "AWS_ACCESS_KEY_ID"},
			{name: "wrong region", more: []string{"-s3-region", "eu-west-9"}, says: "-s3-region"},
			{name: "no bucket", cache: "s3://nobucket/kv", more: []string{}, says: "must exist"},
			{name: "a page", url: html.URLs()[0], says: "web page"},
			{name: "nobody", url: nobody, more: []string{"-s3-retries", "0"},
				says: "is the store running"},
			{name: "not TLS", url: strings.Replace(d.URLs()[0], "http:", "https:", 1),
				says: "does not speak TLS"},
			{name: "a secret in the address", says: "-s3-endpoint",
				url: "http://" + keyID + ":" + secret + "@127.0.0.1:9000"},
			{name: "a dump", signal: syscall.SIGABRT, says: "goroutine"},
		} {
			if length != 40 && (c.signal != 0 || c.more != nil) {
				continue // the same again
			}
			mine := secret
			if c.secret != "" {
				mine = c.secret
			}
			yours := token
			if c.token != "" {
				yours = c.token
			}
			url := d.URLs()[0]
			if c.url != "" {
				url = c.url
			}
			b, flags := onObjects(t, []string{url}, mine, yours)
			if c.cache != "" {
				b.cache = c.cache
			}
			count := "20x"
			if c.signal != 0 {
				count = "10m"
			}
			args := append(append(append(flags, b.places()...), "-test.bench", "MaxStorageStress",
				"-test.benchtime", count, "-test.v"), c.more...)
			d.ClearLog()
			p := b.start(args...)
			if c.signal != 0 {
				require.Eventually(t, func() bool { return len(d.Log()) > 200 }, time.Minute,
					10*time.Millisecond)
				require.NoError(t, p.Process.Signal(c.signal))
			}
			o := p.end()
			name := fmt.Sprintf("%s, %d characters", c.name, length)
			if c.says == "" {
				assert.Zero(t, o.code, "%s\n%s\n%s", name, o.stdout, o.stderr)
			} else {
				assert.NotZero(t, o.code, name)
				assert.Contains(t, tail(o.stdout+o.stderr), c.says, name)
			}
			b.nowhere(o, name, mine, yours, nil)
		}
	}
}

// nowhere fails where 8 characters of a secret or token are in what a run has printed, in a file of
// its own, or in other texts that it has shown.
func (b *bench) nowhere(o outcome, name, secret, token string, texts map[string]string) {
	b.t.Helper()
	all := map[string]string{"standard output": o.stdout, "standard error": o.stderr}
	maps.Copy(all, texts)
	require.NoError(b.t, filepath.WalkDir(b.work, func(path string, e fs.DirEntry,
		err error) error {
		if err == nil && e.Type().IsRegular() {
			text, err := os.ReadFile(path)
			all[path] = string(text)
			return err
		}
		return err
	}))
	for where, text := range all {
		assert.NotContains(b.t, text, "IGNORED", where) // the environment
		for what, s := range map[string]string{"secret": secret, "token": token} {
			for i := 0; i+8 <= len(s); i++ {
				if strings.Contains(text, s[i:i+8]) {
					b.t.Errorf("%s: %s has characters %d to %d of the %s", name, where, i,
						i+8, what)
					break
				}
			}
		}
	}
}

// The same of ranks, which are processes that hand things to each other, of the metrics that they
// show to whoever asks, and of checkpoints.
func TestSecretsOfRanksAreNowhere(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	secret, token := letters(40), letters(100)
	d := s3double.Start(t, s3double.Config{Buckets: []string{"bucket"}, AccessKey: keyID,
		SecretKey: secret, Token: token,
		Rules: []s3double.Rule{{Key: "/[0-9a-f]{2}/|.pt$", Nth: 3, Fault: s3double.Fault{
			Kind: s3double.Status, Status: 500, Message: secret + token}}}}, 1)

	b, flags := onObjects(t, d.URLs(), secret, token)
	p := b.start(append(append(flags, b.places()...), "-test.bench=MaxStorageStress", "-test.v",
		"-test.benchtime=10m", "-ranks=2", "-metrics-listen=127.0.0.1:0")...)
	texts := map[string]string{}
	address := regexp.MustCompile(`metrics until the run ends: (http://127\.0\.0\.1:\d+/metrics)`)
	eventually(t, "metrics of both ranks", func() bool {
		m := address.FindStringSubmatch(p.errout.String())
		if m == nil {
			return false
		}
		answer, err := http.Get(m[1])
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		texts["metrics"] = string(text)
		return strings.Contains(string(text), `rank="1"`)
	})
	http.DefaultClient.CloseIdleConnections()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline") // none but on Linux
	require.NoError(t, err)
	for _, path := range lines {
		if text, err := os.ReadFile(path); err == nil { // it may have ended
			texts[path] = string(text)
		}
	}
	require.NoError(t, p.Process.Signal(syscall.SIGINT))
	o := p.end()
	assert.Equal(t, 130, o.code, o.stderr)
	b.nowhere(o, "ranks", secret, token, texts)

	b, _ = onObjects(t, d.URLs(), secret, token)
	o = b.ok(append(b.places(), "-s3-endpoint", d.URLs()[0], "-test.bench=Checkpoint$", "-ranks=2",
		"-checkpoint-accelerators=4", "-checkpoint-scale=1/1024", "-stream-chunk=5MiB",
		"-test.v")...)
	b.nowhere(o, "checkpoints", secret, token, nil)
}

// letters are so many of a secret, at random.
func letters(n int) string {
	const all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var b strings.Builder
	for range n {
		b.WriteByte(all[rand.IntN(len(all))])
	}
	return b.String()
}

// tail is the end of a long text.
func tail(text string) string { return text[max(0, len(text)-4000):] }
