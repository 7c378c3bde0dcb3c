package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Capabilities are the effective ones of this process, a bit for each by its number in linux/capability.h.
func Capabilities() (uint64, error) { return effectiveCapabilities("/proc/self/status") }

// effectiveCapabilities reads CapEff of a status file in /proc.
func effectiveCapabilities(path string) (uint64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for l := range strings.Lines(string(text)) {
		if hex, ok := strings.CutPrefix(l, "CapEff:"); ok {
			return strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
		}
	}
	return 0, fmt.Errorf("%s has no CapEff", path)
}

// Lockdown is the chosen mode in "none [integrity] confidentiality".
func Lockdown() string {
	_, after, ok := strings.Cut(line("/sys/kernel/security/lockdown"), "[")
	if !ok {
		return ""
	}
	mode, _, _ := strings.Cut(after, "]")
	return mode
}
