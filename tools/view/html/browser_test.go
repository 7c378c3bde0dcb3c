package html

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// browser is a headless Chromium with one page, driven by the DevTools protocol over two pipes: a
// JSON message each way, ended by a zero byte. It needs no library and no port.
type browser struct {
	t        testing.TB
	to       *os.File
	from     *bufio.Reader
	session  string
	id       int
	height   int       // of the window, 0 = 844
	seen     []message // events
	troubles []string  // messages of the console
}

// message is an answer or an event.
type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// newBrowser starts a browser, or skips the test; KVTEST_REQUIRE_BROWSER=1 makes that a failure.
func newBrowser(t testing.TB) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = cmp.Or(path, p)
		}
	}
	if path == "" {
		why := "no chromium here (apt-get install chromium): the page is not opened in a browser"
		if os.Getenv("KVTEST_REQUIRE_BROWSER") == "1" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	theirs, ours, err := os.Pipe()
	require.NoError(t, err)
	answers, said, err := os.Pipe()
	require.NoError(t, err)
	profile, err := os.MkdirTemp("", "browser")
	require.NoError(t, err)
	c := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		"--no-first-run", "--disable-dev-shm-usage", "--disable-background-networking",
		"--remote-debugging-pipe", "--user-data-dir="+profile)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.ExtraFiles = []*os.File{theirs, said} // descriptors 3 and 4, which it reads and writes
	require.NoError(t, c.Start())
	theirs.Close()
	said.Close()
	t.Cleanup(func() {
		ours.Close()
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait() // the error is that it was killed
		answers.Close()
		// Its children are killed with it, but the test cannot wait for them: one may still make a
		// file.
		for err := os.RemoveAll(profile); err != nil; err = os.RemoveAll(profile) {
			if !errors.Is(err, syscall.ENOTEMPTY) {
				t.Error(err)
				return
			}
		}
	})
	b := &browser{t: t, to: ours, from: bufio.NewReaderSize(answers, 1<<20)}
	var target struct {
		TargetID  string `json:"targetId"`
		SessionID string `json:"sessionId"`
	}
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true},
		&target)
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// call sends a request and waits for the answer without a limit.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	b.id++
	m := map[string]any{"id": b.id, "method": method}
	if params != nil {
		m["params"] = params
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	require.NoError(b.t, err)
	_, err = b.to.Write(append(text, 0))
	require.NoError(b.t, err)
	for {
		m := b.next()
		if m.ID != b.id {
			continue
		}
		require.Empty(b.t, string(m.Error), method)
		if result != nil {
			require.NoError(b.t, json.Unmarshal(m.Result, result))
		}
		return
	}
}

// next reads a message, and keeps events.
func (b *browser) next() (m message) {
	b.t.Helper()
	text, err := b.from.ReadBytes(0)
	require.NoError(b.t, err, "the browser has ended")
	require.NoError(b.t, json.Unmarshal(text[:len(text)-1], &m))
	switch m.Method {
	case "":
	case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded":
		b.troubles = append(b.troubles, m.Method+" "+string(m.Params))
	default:
		b.seen = append(b.seen, m)
	}
	return m
}

// open shows a page from disk in a window of that width.
func (b *browser) open(html string, width int, scheme string) {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "report.html")
	require.NoError(b.t, os.WriteFile(path, []byte(html), 0o644))
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": cmp.Or(b.height, 844),
		"deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.seen = nil
	b.call("Page.navigate", map[string]any{"url": "file://" + path}, nil)
	for i := 0; ; i++ {
		for ; i < len(b.seen); i++ {
			if b.seen[i].Method == "Page.loadEventFired" {
				return
			}
		}
		b.next()
		i--
	}
}

// eval returns the value of an expression, or of its promise.
func (b *browser) eval(script string, value any) {
	b.t.Helper()
	var r struct {
		Result  struct{ Value json.RawMessage }
		Details json.RawMessage `json:"exceptionDetails"`
	}
	b.call("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true,
		"returnByValue": true}, &r)
	require.Empty(b.t, string(r.Details), script)
	if value != nil {
		require.NoError(b.t, json.Unmarshal(r.Result.Value, value), script)
	}
}

// mouse sends an event of the left button, or a movement with or without it.
func (b *browser) mouse(event string, x, y float64, pressed bool) {
	b.t.Helper()
	p := map[string]any{"type": event, "x": x, "y": y, "clickCount": 1}
	if pressed {
		p["button"], p["buttons"] = "left", 1
	}
	b.call("Input.dispatchMouseEvent", p, nil)
}

// drag presses at one place and releases at another.
func (b *browser) drag(x0, x1, y float64) {
	b.t.Helper()
	b.mouse("mouseMoved", x0, y, false)
	b.mouse("mousePressed", x0, y, true)
	b.mouse("mouseMoved", (x0+x1)/2, y, true)
	b.mouse("mouseMoved", x1, y, true)
	b.mouse("mouseReleased", x1, y, true)
}
