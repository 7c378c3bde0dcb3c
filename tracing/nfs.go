package tracing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// NFS is what an NFS mount asked of its server, counted by the kernel for everybody who uses the
// mount: of one reading since it was mounted, of two readings between them. It needs no privilege.
type NFS struct {
	Source  string `json:"source"`  // server:/export
	Version string `json:"version"` // of the protocol: 3, 4, 4.1
	// ReadBytes and WriteBytes came from the server and went there; what the page cache answered is
	// not in them.
	ReadBytes  int64 `json:"read_bytes"`
	WriteBytes int64 `json:"write_bytes"`
	// Operations are those that were asked for, the ones that took longest in all first.
	Operations []NFSOperation `json:"operations"`
}

// NFSOperation is one kind of request to the server. Times are summed over requests, which overlap,
// with the kernel's resolution of a millisecond.
type NFSOperation struct {
	Name          string `json:"name"` // READ, WRITE, COMMIT, OPEN, …
	Count         int64  `json:"count"`
	Retransmitted int64  `json:"retransmitted"` // sent once more
	Timeouts      int64  `json:"timeouts"`
	SentBytes     int64  `json:"sent_bytes"` // with their headers, as all bytes of operations
	ReceivedBytes int64  `json:"received_bytes"`
	QueueNS       int64  `json:"queue_ns"`      // until it was sent
	RoundTripNS   int64  `json:"round_trip_ns"` // until its answer came
	ExecuteNS     int64  `json:"execute_ns"`    // from the call to its end, both included
	Errors        int64  `json:"errors"`        // 0 also where the kernel counts none (before 5.1)
}

// counters are the numbers of an operation.
func (o *NFSOperation) counters() []*int64 {
	return []*int64{&o.Count, &o.Retransmitted, &o.Timeouts, &o.SentBytes, &o.ReceivedBytes,
		&o.QueueNS, &o.RoundTripNS, &o.ExecuteNS, &o.Errors}
}

// Sub is what was asked since the reading before; nil where it is not of the same mount: one that
// was mounted anew counts from 0.
func (n *NFS) Sub(before *NFS) *NFS {
	if n == nil || before == nil || n.Source != before.Source {
		return nil
	}
	out := &NFS{Source: n.Source, Version: n.Version, ReadBytes: n.ReadBytes - before.ReadBytes,
		WriteBytes: n.WriteBytes - before.WriteBytes}
	least := min(out.ReadBytes, out.WriteBytes)
	for _, o := range n.Operations {
		i := slices.IndexFunc(before.Operations,
			func(b NFSOperation) bool { return b.Name == o.Name })
		if i >= 0 {
			old := before.Operations[i]
			for k, to := range o.counters() {
				*to -= *old.counters()[k]
				least = min(least, *to)
			}
		}
		if o.Count > 0 {
			out.Operations = append(out.Operations, o)
		}
	}
	if least < 0 {
		return nil
	}
	slices.SortStableFunc(out.Operations,
		func(a, b NFSOperation) int { return cmp.Compare(b.ExecuteNS, a.ExecuteNS) })
	return out
}

// Lines say it for people: a line for each of what moves bytes, and one for all others.
func (n *NFS) Lines() (lines []string) {
	lines = append(lines, fmt.Sprintf("%s (NFS %s), of all that use the mount: %.2f GiB from the "+
		"server, %.2f GiB to it", n.Source, n.Version, GiB(n.ReadBytes), GiB(n.WriteBytes)))
	var rest []string
	for _, o := range n.Operations {
		mean := func(ns int64) time.Duration {
			return (time.Duration(ns) / time.Duration(max(1, o.Count))).Round(10 * time.Microsecond)
		}
		text := fmt.Sprintf("%d × %s, mean round trip %s, with waiting %s", o.Count, o.Name,
			mean(o.RoundTripNS), mean(o.ExecuteNS))
		if o.Retransmitted+o.Timeouts > 0 {
			text += fmt.Sprintf("; %d sent again, %d timed out", o.Retransmitted, o.Timeouts)
		}
		if o.Errors > 0 {
			text += fmt.Sprintf("; %d errors", o.Errors)
		}
		switch o.Name {
		case "READ", "WRITE", "COMMIT":
			lines = append(lines, text)
		default:
			rest = append(rest, fmt.Sprintf("%d %s", o.Count, o.Name))
		}
	}
	if len(rest) > 0 {
		lines = append(lines, "besides "+strings.Join(rest, ", "))
	}
	return lines
}
