//go:build !cgo || !linux || nonvml

package nvml

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"kvbench/tracing/host"
)

// Cards returns the cards of this machine. nvidia-smi hangs if the driver does not answer: it has 10 s.
func Cards() ([]Card, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nvidia-smi", "--format=csv,noheader,nounits",
		"--query-gpu=pci.bus_id,name,uuid,driver_version,memory.total,memory.used").Output()
	if err != nil {
		return nil, fmt.Errorf("this build has no NVML, because it was built without cgo, with -tags nonvml or not for Linux, "+
			"and nvidia-smi, which comes with the NVIDIA driver, reports nothing: %w", err)
	}
	return parse(string(out)), nil
}

// parse reads a card per line.
func parse(table string) (list []Card) {
	for line := range strings.Lines(table) {
		f := strings.Split(strings.TrimSpace(line), ", ")
		if len(f) != 6 {
			continue
		}
		list = append(list, Card{Address: host.PCIAddress(f[0]), Name: f[1], UUID: f[2], Driver: f[3],
			MemoryBytes: mebibytes(f[4]), UsedBytes: mebibytes(f[5]), Source: "nvidia-smi"})
	}
	return list
}

// mebibytes returns nil for a text such as [N/A].
func mebibytes(text string) *int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return new(n << 20)
}
