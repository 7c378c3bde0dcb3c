package host

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"kvbench/tracing"
)

// ReadNFS reads what the kernel has counted of an NFS mount since it was mounted, for everybody who
// uses it. Nil without an error is a mount of another kind. It asks no server, so that one that is
// gone cannot hold it up.
func ReadNFS(mount Mount) (*tracing.NFS, error) { return thisMachine().readNFS(mount) }

func (m machine) readNFS(mount Mount) (*tracing.NFS, error) {
	if mount.Type != "nfs" && mount.Type != "nfs4" {
		return nil, nil
	}
	const path = "/proc/self/mountstats"
	text, err := os.ReadFile(m.Path(path))
	if err != nil {
		return nil, fmt.Errorf("read the counters of %s: %w", mount.Source, err)
	}
	n, err := ParseMountStats(string(text), mount.Point)
	if err == nil && n == nil {
		err = fmt.Errorf("%s has no counters of what is mounted on %s", path, mount.Point)
	}
	return n, err
}

// ParseMountStats finds the counters of the NFS mount on a point in the text of
// /proc/self/mountstats; nil where there is none. Of two mounts on one point the later hides the
// earlier. Its statistics are those of version 1.0 and 1.1 (net/sunrpc/stats.c and fs/nfs/super.c
// of Linux): lines and columns behind those that are known are ignored.
func ParseMountStats(text, point string) (found *tracing.NFS, err error) {
	var at *tracing.NFS
	operations := false
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 8 && f[0] == "device" && f[2] == "mounted" && f[3] == "on":
			// device server:/export mounted on /mnt with fstype nfs4 statvers=1.1
			at, operations = nil, false
			if unescape(f[4]) == point && f[6] == "fstype" && strings.HasPrefix(f[7], "nfs") {
				at = &tracing.NFS{Source: unescape(f[1])}
				found = at
			}
		case at == nil || len(f) == 0:
		case f[0] == "opts:":
			at.Version = versionOf(strings.TrimPrefix(strings.TrimSpace(line), "opts:"))
		case f[0] == "bytes:":
			// Read and written by calls, by direct ones, from and to the server, and pages.
			if err := numbers(line, f[1:], []column{{4, 1, &at.ReadBytes},
				{5, 1, &at.WriteBytes}}); err != nil {
				return nil, err
			}
		case f[0] == "per-op" && len(f) > 1:
			operations = true
		case operations && strings.HasSuffix(f[0], ":"):
			o := tracing.NFSOperation{Name: strings.TrimSuffix(f[0], ":")}
			sent := int64(0)
			columns := []column{{0, 1, &o.Count}, {1, 1, &sent}, {2, 1, &o.Timeouts},
				{3, 1, &o.SentBytes}, {4, 1, &o.ReceivedBytes}, {5, tick, &o.QueueNS},
				{6, tick, &o.RoundTripNS}, {7, tick, &o.ExecuteNS}}
			if len(f) > 9 {
				columns = append(columns, column{8, 1, &o.Errors})
			}
			if err := numbers(line, f[1:], columns); err != nil {
				return nil, err
			}
			o.Retransmitted = max(0, sent-o.Count)
			at.Operations = append(at.Operations, o)
		}
	}
	return found, nil
}

// versionOf is the version of the protocol in the options of a mount.
func versionOf(options string) string {
	for o := range strings.SplitSeq(options, ",") {
		if v, ok := strings.CutPrefix(strings.TrimSpace(o), "vers="); ok {
			return v
		}
	}
	return "of an unknown version"
}

// numbers reads columns of a line.
func numbers(line string, fields []string, columns []column) error {
	for _, c := range columns {
		if c.at >= len(fields) {
			return fmt.Errorf("counters of a mount: %d columns in %q", len(fields), clip(line))
		}
		v, err := strconv.ParseUint(fields[c.at], 10, 64)
		if err != nil || v > math.MaxInt64/uint64(c.unit) {
			return fmt.Errorf("counters of a mount: %q in %q is no count", clip(fields[c.at]),
				clip(line))
		}
		*c.to = int64(v) * c.unit
	}
	return nil
}
