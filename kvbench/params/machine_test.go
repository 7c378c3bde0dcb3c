package params

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbench/kvbench/units"
	"kvbench/tracing/host"
)

// scriptCapacity decides the size of a storage tier: see the script machine.
func scriptCapacity(t *testing.T, line string) string {
	var given float64
	var dirs []string
	var on []host.Filesystem
	ranks, byDefault := 1, false
	for _, word := range strings.Fields(line) {
		parts := strings.Split(word, ":")
		switch {
		case word == "default":
			byDefault = true
		case len(parts) > 1:
			var free, total float64
			_, err := fmt.Sscanf(parts[2], "%g/%g", &free, &total)
			require.NoError(t, err)
			dirs = append(dirs, parts[0])
			on = append(on, host.Filesystem{Type: parts[1], Free: int64(free * float64(units.GiB)),
				Total: int64(total * float64(units.GiB)), Root: parts[len(parts)-1] == "root",
				Shared: parts[len(parts)-1] == "shared"})
		default:
			_, _ = fmt.Sscanf(word, "given=%g", &given)
			_, _ = fmt.Sscanf(word, "ranks=%d", &ranks)
		}
	}
	sharing := make([]int, len(dirs))
	for i := range sharing {
		sharing[i] = ranks
	}
	bytes, shares, err := ChooseShares(dirs, on, sharing, int64(given*float64(units.GiB)), byDefault)
	if err != nil {
		return err.Error()
	}
	text := units.Bytes.Text(bytes)
	for i, s := range shares {
		text += fmt.Sprintf("; %s at most %s, %s stay free", dirs[i], units.Bytes.Text(s.Bytes),
			units.Bytes.Text(s.Floor))
	}
	return text
}

// scriptMemory checks what a run needs: see the script machine.
func scriptMemory(line string) string {
	mib := map[string]int64{"ranks": 1}
	for _, word := range strings.Fields(line) {
		name, _, _ := strings.Cut(word, "=")
		var n int64
		_, _ = fmt.Sscanf(word, name+"=%d", &n)
		mib[name] = n
	}
	l := host.Limits{MemoryAvailable: mib["available"] << 20, MemoryAvailableSource: "/proc/meminfo",
		MemoryLimit: mib["limit"] << 20, MemoryLimitSource: "a cgroup"}
	m := EstimateMemory(mib["buffers"]<<20, mib["cpu"]<<20, int(mib["shards"]))
	text := "fits"
	if err := CheckMemory(m, "less", int(mib["ranks"]), l); err != nil {
		text = err.Error()
	}
	return fmt.Sprintf("%s; buffers of at most %s", text,
		units.Bytes.Text(MostBuffers(int(mib["ranks"]), l)))
}
