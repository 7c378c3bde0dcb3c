package s3gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// program is the path of the server, which is built if it is not there yet. Processes that want it
// at the same time wait for the first of them; what they find is whole.
var program = sync.OnceValues(func() (string, error) {
	_, here, _, _ := runtime.Caller(0)
	module := filepath.Join(filepath.Dir(here), "..", "s3test")
	sources, err := filepath.Glob(filepath.Join(module, "*.go"))
	if err != nil || len(sources) == 0 { // as in a binary that was built with -trimpath
		return "", fmt.Errorf("the sources of the server are not at %s", module)
	}
	sources = append(sources, filepath.Join(module, "go.mod"), filepath.Join(module, "go.sum"))
	version, err := goCommand(module, "version")
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	digest.Write([]byte(version))
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		digest.Write(text)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "kvbench-tests")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(cache, "s3test-"+hex.EncodeToString(digest.Sum(nil)[:8]))
	lock, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
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
	part := path + ".part"
	if _, err := goCommand(module, "build", "-trimpath", "-o", part, "."); err != nil {
		return "", err
	}
	return path, os.Rename(part, path)
})

// goCommand runs the go command in a directory and returns what it prints. Its error ends in the
// first lines of what the command has to say, which names the reason.
func goCommand(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	// A workspace or -mod=vendor of the user is about another module; the server has no C.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		lines := strings.SplitN(strings.TrimSpace(string(exit.Stderr)), "\n", 4)
		err = fmt.Errorf("%w: %s", err, strings.Join(lines[:min(len(lines), 3)], "; "))
	}
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w", strings.Join(args, " "), dir, err)
	}
	return string(out), nil
}
