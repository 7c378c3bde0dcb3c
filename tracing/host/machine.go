package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Root is where /proc and /sys are found: "" on a machine, a directory of made-up files in a test.
// Its methods take a path in pieces, below the root; what is not there is empty.
type Root string

// Path is where a file really is.
func (r Root) Path(elem ...string) string {
	return filepath.Join(append([]string{string(r)}, elem...)...)
}

// Text is what a small file holds, without the space around it.
func (r Root) Text(elem ...string) string {
	text, _ := os.ReadFile(r.Path(elem...))
	return strings.TrimSpace(string(text))
}

// Integer is the number in a file, nil when there is none.
func (r Root) Integer(elem ...string) *int64 {
	n, err := strconv.ParseInt(r.Text(elem...), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// Names lists a directory in order.
func (r Root) Names(elem ...string) []string {
	entries, _ := os.ReadDir(r.Path(elem...))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Exists reports whether there is such a file or directory.
func (r Root) Exists(elem ...string) bool {
	_, err := os.Lstat(r.Path(elem...))
	return err == nil
}

// Field is what stands behind a key in the first line of a file that begins with it, without what
// parts and encloses it: keys and values are "MemTotal:       123 kB", "inactive_file 5",
// "model name\t: X", `NAME="X"`.
func (r Root) Field(key string, elem ...string) string {
	for line := range strings.Lines(r.Text(elem...)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			return strings.Trim(rest, " \t\n:=\"'")
		}
	}
	return ""
}

// KiB is a field in KiB, as bytes; 0 when there is none.
func (r Root) KiB(key string, elem ...string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSuffix(r.Field(key, elem...), " kB"), 10, 53)
	return max(0, n) << 10
}

// Chosen picks the bracketed word of a choice in sysfs ("always [madvise] never"); a single word is
// itself.
func Chosen(s string) string {
	if _, rest, ok := strings.Cut(s, "["); ok {
		word, _, _ := strings.Cut(rest, "]")
		return word
	}
	return s
}

// machine is what is asked: files, and the few system calls that no file answers. Tests replace
// both.
type machine struct {
	Root
	identify  func(path string) (identity, error)
	blockNode func(path string) (major, minor uint32, err error) // of a node such as /dev/sda1
	// affinity counts the processors that may run this process, 0 = unknown.
	affinity func() int
}

// identity is what the kernel says about one path.
type identity struct {
	path         string // absolute, without symlinks
	major, minor uint32 // of the filesystem that holds it (st_dev)
	mountID      int    // 0 where the kernel does not say
}

func thisMachine() machine {
	return machine{identify: identify, blockNode: blockNode, affinity: allowedCPUs}
}

// parseDeviceNumber reads "major:minor" as sysfs and mountinfo write it.
func parseDeviceNumber(s string) (major, minor uint32, err error) {
	a, b, _ := strings.Cut(strings.TrimSpace(s), ":")
	ma, errMajor := strconv.ParseUint(a, 10, 32)
	mi, errMinor := strconv.ParseUint(b, 10, 32)
	if errMajor != nil || errMinor != nil {
		return 0, 0, fmt.Errorf("%q is no device number (major:minor)", clip(s))
	}
	return uint32(ma), uint32(mi), nil
}

// clip keeps an error message to one line of sensible length, whatever the file held.
func clip(s string) string {
	const longest = 80
	if len(s) > longest {
		return s[:longest] + "…"
	}
	return s
}
