package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Root is the parent of /proc and /sys: "" on a machine, a directory of made-up files in a test. Its
// methods take the elements of a path below the root; a missing file is empty.
type Root string

// Path returns the path of a file below the root.
func (r Root) Path(elem ...string) string {
	return filepath.Join(append([]string{string(r)}, elem...)...)
}

// Text returns the content of a small file without surrounding space.
func (r Root) Text(elem ...string) string {
	text, _ := os.ReadFile(r.Path(elem...))
	return strings.TrimSpace(string(text))
}

// Integer returns the number in a file, or nil.
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

// Field returns the value of a key: the rest of the first line that begins with the key, without
// separators and quotes. Examples of lines: "MemTotal:       123 kB", "inactive_file 5", "model name\t: X",
// `NAME="X"`.
func (r Root) Field(key string, elem ...string) string {
	for line := range strings.Lines(r.Text(elem...)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			return strings.Trim(rest, " \t\n:=\"'")
		}
	}
	return ""
}

// KiB returns a field in KiB as bytes; 0 without the field.
func (r Root) KiB(key string, elem ...string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSuffix(r.Field(key, elem...), " kB"), 10, 53)
	return max(0, n) << 10
}

// Chosen returns the bracketed word of a choice in sysfs ("always [madvise] never"), or the only word.
func Chosen(s string) string {
	if _, rest, ok := strings.Cut(s, "["); ok {
		word, _, _ := strings.Cut(rest, "]")
		return word
	}
	return s
}

// machine is the source of the facts: files, and a few system calls. Tests replace both.
type machine struct {
	Root
	identify  func(path string) (identity, error)
	blockNode func(path string) (major, minor uint32, err error) // of a node such as /dev/sda1
	// affinity counts the processors that may run this process, 0 = unknown.
	affinity func() int
}

// identity is the kernel's identification of one path.
type identity struct {
	path         string // absolute, without symlinks
	major, minor uint32 // of its filesystem (st_dev)
	mountID      int    // 0 if the kernel does not report it
}

func thisMachine() machine {
	return machine{identify: identify, blockNode: blockNode, affinity: allowedCPUs}
}

// parseDeviceNumber reads "major:minor" as sysfs writes it.
func parseDeviceNumber(s string) (major, minor uint32, err error) {
	if _, err := fmt.Sscanf(s, "%d:%d", &major, &minor); err != nil {
		return 0, 0, fmt.Errorf("%q is no device number (major:minor)", s)
	}
	return major, minor, nil
}
