package s3gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kvbench/tiers/objecttier/s3double/testnet"
)

// RequireEnv is the environment variable that turns skips into failures when it is "1".
const RequireEnv = "KVTEST_REQUIRE_S3"

// Config is what a store is started with. The zero value serves.
type Config struct {
	// Bucket is made; "bench" if empty.
	Bucket string
	// AccessKey, SecretKey, Region are "key", "secret" and us-east-1 if empty.
	AccessKey, SecretKey, Region string
	// Domain: BUCKET.Domain is a name of the bucket (virtual style), besides paths.
	Domain string
	// Certificate, if there is any, makes it https.
	Certificate *testnet.Certificate
	// Log lets the endpoints write what they are asked for into Store.Logs, a line each in the
	// format of S3's server access log.
	Log bool
}

// Store is a directory and the endpoints that show it.
type Store struct {
	Config
	// Dir holds the bucket as a directory, and objects as files in it.
	Dir       string
	Endpoints []*Endpoint

	files string // certificate, logs
}

// Endpoint is one process.
type Endpoint struct {
	store    *Store
	index    int
	address  string // 127.0.0.1:40001
	cmd      *exec.Cmd
	lifeline io.Closer // ends the process when closed
}

// Start starts a store with n endpoints, or skips the test: see the package. The end of the test
// ends the processes and removes the directory.
func Start(t testing.TB, c Config, n int) *Store {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: a real object store is built and started")
	}
	path, err := program()
	if err != nil {
		need(t, err)
	}
	c.Bucket, c.Region = cmp.Or(c.Bucket, "bench"), cmp.Or(c.Region, "us-east-1")
	c.AccessKey, c.SecretKey = cmp.Or(c.AccessKey, "key"), cmp.Or(c.SecretKey, "secret")
	s := &Store{Config: c, files: t.TempDir(), Dir: memory(t)}
	t.Cleanup(func() {
		for _, e := range s.Endpoints {
			e.Kill()
		}
	})
	if c.Certificate != nil {
		for name, text := range map[string][]byte{"cert": c.Certificate.Cert,
			"key": c.Certificate.Key, "ca": c.Certificate.CA} {
			if err := os.WriteFile(filepath.Join(s.files, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range n {
		e := &Endpoint{store: s, index: i}
		if err := e.start(path); err != nil {
			need(t, err)
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

// need skips the test, or fails it where that must not happen.
func need(t testing.TB, err error) {
	t.Helper()
	if os.Getenv(RequireEnv) == "1" {
		t.Fatalf("%s=1, but: %v", RequireEnv, err)
	}
	t.Skipf("skipped for lack of an object store: %v", err)
}

// memory is a directory that lies in memory, where the machine has such a place: objects must not
// wait for its disk.
func memory(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "s3gateway-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// URLs are the endpoints' addresses, as a user types them.
func (s *Store) URLs() (urls []string) {
	for _, e := range s.Endpoints {
		urls = append(urls, e.URL())
	}
	return urls
}

// CAFile is the PEM file of the authority that clients have to trust, with Config.Certificate.
func (s *Store) CAFile() string { return filepath.Join(s.files, "ca") }

// Logs are the files of the access logs, one for each endpoint, with Config.Log.
func (s *Store) Logs() (paths []string) {
	for i := range s.Endpoints {
		paths = append(paths, filepath.Join(s.files, fmt.Sprintf("log.%d", i)))
	}
	return paths
}

// Environ is what a client finds its credentials in.
func (s *Store) Environ() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + s.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s.SecretKey,
		"AWS_REGION=" + s.Region}
}

// URL is http://127.0.0.1:40001.
func (e *Endpoint) URL() string {
	if e.store.Certificate != nil {
		return "https://" + e.address
	}
	return "http://" + e.address
}

// Process is the process of the endpoint while it runs.
func (e *Endpoint) Process() *os.Process { return e.cmd.Process }

// start starts the process, at its address if it has one already. A free port may be taken before
// the process gets it: then another is tried.
func (e *Endpoint) start(path string) (err error) {
	if e.address != "" {
		return e.try(path)
	}
	for range 5 {
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
		e.address = l.Addr().String()
		_ = l.Close()
		if err = e.try(path); err == nil {
			return nil
		}
	}
	return err
}

// try starts the process and waits until it serves.
func (e *Endpoint) try(path string) error {
	s := e.store
	args := []string{"-until-eof", "-listen", e.address, "-dir", s.Dir, "-bucket", s.Bucket,
		"-region", s.Region, "-domain", s.Domain}
	if s.Certificate != nil {
		args = append(args, "-cert", filepath.Join(s.files, "cert"), "-key",
			filepath.Join(s.files, "key"))
	}
	if s.Log {
		args = append(args, "-log", filepath.Join(s.files, fmt.Sprintf("log.%d", e.index)))
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), s.Environ()...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		_ = lifeline.Close()
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(path), strings.Join(args, " "),
			errors.Join(cmd.Wait(), err), strings.TrimSpace(stderr.String()))
	}
	e.cmd, e.lifeline = cmd, lifeline
	return nil
}

// Kill kills the process with SIGKILL and waits for it; nothing of it needs an orderly end. Killing
// twice is harmless.
func (e *Endpoint) Kill() {
	if e.cmd != nil {
		_ = e.cmd.Process.Kill()
		_ = e.cmd.Wait()
		_ = e.lifeline.Close()
		e.cmd = nil
	}
}

// Return starts an endpoint again that was killed, at its old address.
func (e *Endpoint) Return() error {
	path, err := program()
	if err != nil {
		return err
	}
	return e.start(path)
}
