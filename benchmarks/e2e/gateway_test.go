package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// versitygw is an S3 server that verifies signatures and checksums, pinned. benchmarks/README.md
// starts the same one.
const versitygw = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"

// gatewayProgram builds the server into the user's cache, once for all processes.
var gatewayProgram = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "kvbench-tests", filepath.Base(versitygw)+"-"+runtime.Version())
	part, path := filepath.Join(dir, "part"), filepath.Join(dir, "versitygw")
	if err := os.MkdirAll(part, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	build := exec.Command("go", "install", "-trimpath", versitygw)
	build.Dir = dir // outside of any module
	build.Env = append(plainEnv(), "GOBIN="+part, "GOFLAGS=-buildvcs=false", "GOWORK=off",
		"CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go install %s: %w\n%s", versitygw, err, out)
	}
	return path, os.Rename(filepath.Join(part, "versitygw"), path)
})

// gateway starts the server with two endpoints. It skips the test where the server cannot be built
// or started, and fails it where KVTEST_REQUIRE_S3 is 1. Dir holds the objects as files.
func gateway(t testing.TB) (urls []string, dir string) {
	t.Helper()
	endToEnd(t)
	need := func(err error) {
		t.Helper()
		switch {
		case err != nil && os.Getenv("KVTEST_REQUIRE_S3") == "1":
			t.Fatalf("KVTEST_REQUIRE_S3=1, but: %v", err)
		case err != nil:
			t.Skipf("no S3 server: %v", err)
		}
	}
	path, err := gatewayProgram()
	need(err)
	// Objects must not wait for this machine's disk. The server needs extended attributes.
	root, err := os.MkdirTemp("/dev/shm", "kvbench-e2e-s3-")
	if err != nil {
		root = t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	dir = filepath.Join(root, bucket)
	require.NoError(t, os.Mkdir(dir, 0o755))
	// The shell kills the server when its standard input ends, also when this process is killed.
	args := []string{"-c", `"$@" & cat; kill -9 $!`, "sh", path, "--access", "key", "--secret",
		"secret", "--keep-alive", "--quiet"}
	var addresses []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		addresses = append(addresses, l.Addr().String())
		args = append(args, "--port", l.Addr().String())
		require.NoError(t, l.Close())
	}
	var printed bytes.Buffer
	cmd := exec.Command("sh", append(args, "posix", root)...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &printed, &printed, time.Second
	lifeline, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = lifeline.Close()
		_ = cmd.Wait()
	})
	for _, address := range addresses {
		urls = append(urls, "http://"+address)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			c, err := net.Dial("tcp", address)
			if err == nil {
				_ = c.Close()
				break
			}
			if time.Now().After(deadline) {
				_ = lifeline.Close()
				_ = cmd.Wait()
				need(fmt.Errorf("%s: %w\n%s", versitygw, err, printed.String()))
			}
		}
	}
	return urls, dir
}
