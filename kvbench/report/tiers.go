package report

import (
	"fmt"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// sizes has the sizes of the moved entries of each tier. Tiers differ, because large entries bypass a
// small tier.
func sizes(r *result.Result) Section {
	s := Section{Title: "Entry Sizes", Topic: "entry size", Folded: true,
		Columns: columns("operation", units.Count, "entries", units.Bytes, "mean", "p50", "p95",
			"largest")}
	for _, t := range r.Tiers {
		level := r.Latency.Levels[t.Level]
		for i, d := range []result.Distribution{level.Read.Size, level.Write.Size} {
			s.some(t.Level+directions[i], d.Count, d.Mean, d.P50, d.P95, d.Max)
		}
	}
	return s
}

// directions name a tier's two directions.
var directions = [...]string{" read", " write"}

// tiers has the content of each tier at the end of the window, in parts that add up to the capacity. One
// part is the space that writes in flight have reserved. Entries that are being deleted occupy space
// that is already reserved, so they are not part of the sum. The peak shows whether the capacity was the
// limit.
func tiers(r *result.Result) (s Section) {
	if r.CompletionUnit == result.UnitOperation {
		return s // without a cache their content is unknown
	}
	s = Section{Title: "Tiers", Topic: "tiers",
		Columns: columns("tier", units.Count, "entries", units.Bytes, "used", "+ being written",
			"+ free", "= capacity", "still leaving", "most held", units.Count, "demoted in",
			units.Bytes, "demoted out", units.Count, "evicted", units.Bytes, "evicted bytes")}
	var kept []string
	for _, l := range r.Tiers {
		held := l.UsedBytes - l.LeavingBytes
		free, capacity := any("unlimited"), any(nil)
		if c := l.CapacityBytes; c != nil {
			free, capacity = *c-held-l.ClaimedBytes, *c
		}
		s.add(l.Level, l.Entries, held, l.ClaimedBytes, free, capacity, l.LeavingBytes, l.PeakBytes,
			l.DemotedIn.Entries, l.DemotedOut.Bytes, l.Evicted.Entries, l.Evicted.Bytes)
		if l.Description != "" {
			kept = append(kept, l.Level+": "+l.Description)
		}
	}
	s.put("", strings.Join(kept, "; "))
	s.trim(3)
	return s
}

// moved is the bytes of each tier and their outcome: the parts add up to the whole in each row, as
// the signs in the heading say, to the byte in the JSON and to three digits here. Parts that no
// tier has are left out. Demotions, promotions and copies are included, because they load a tier
// like other operations; so are bytes that the deadline cut off, because the device has moved them.
// Checkpoints have the rates of their rules.
func moved(r *result.Result) Section {
	s := Section{Title: "Bytes Moved", Topic: "moved",
		Columns: columns("bytes", units.BytesPerSec, "rate", units.Bytes, "all", "= first time",
			"+ again", "+ between tiers", "+ cut off", "+ failed", "− before", "− in memory")}
	for _, l := range r.Tiers {
		rates := []*float64{l.Read.BytesPerSecond, l.Write.BytesPerSecond}
		if r.Checkpoint != nil {
			read, write := r.Checkpoint.Rates()
			rates = []*float64{&read, &write}
		}
		for i, n := range []result.TierTraffic{l.Read, l.Write} {
			first, again := any(n.EntryBytes), any(nil) // what is written is new
			if i == 0 && r.CompletionUnit != result.UnitOperation {
				first, again = l.FirstReads.Bytes, l.ReReads.Bytes
			}
			if n.Bytes+n.EntryBytes > 0 {
				s.add(l.Level+directions[i], rates[i], n.Bytes, first, again,
					n.DemotionBytes, n.CutBytes, n.LostBytes, n.EarlierBytes, n.MemoryBytes)
			}
		}
	}
	s.trim(5)
	if r.CompletionUnit == result.UnitOperation { // first reads and re-reads are not counted apart
		s.Columns[3].Name = "= completed"
		s.drop(4)
	}
	return s
}

// roots is the content and the traffic of each of several directories, and the kernel's counts of
// its device. The last row is the sum; times and shares have none. The sum of the devices comes
// from the device counters, which have each device once, also where directories share it.
func roots(r *result.Result) Section {
	s := Section{Title: "Directories", Topic: "roots", Folded: true,
		Columns: columns("directory", units.Count, "entries", "not by hash", units.Bytes, "used",
			units.BytesPerSec, "read", units.Nanoseconds, "per read", units.BytesPerSec, "written",
			units.Nanoseconds, "per write", units.Number, "in flight", units.Bytes, "device read",
			"device wrote", units.Share, "device busy")}
	s.put("", laggard(r))
	var all result.Root
	// The window is the same for all of them, so rates and means in flight add up.
	sum := func(to **float64, v *float64) {
		if v != nil {
			*to = new(units.OrZero(*to) + *v)
		}
	}
	// Reads and writes share the device, which has both in flight.
	row := func(name string, o result.Root) {
		flying := o.Read.MeanInFlight
		sum(&flying, o.Write.MeanInFlight)
		s.add(name, o.Entries, o.Elsewhere, o.UsedBytes, o.Read.BytesPerSecond,
			o.Read.MeanRequestNS, o.Write.BytesPerSecond, o.Write.MeanRequestNS, flying,
			o.DeviceReadBytes, o.DeviceWriteBytes, o.DeviceBusyShare)
	}
	for _, o := range r.IO.Roots {
		// The device next to the directory: two names of one device explain two equal rows.
		name := o.Directory
		if o.Device != "" {
			name += " (" + o.Device + ")"
		}
		row(name, o)
		all.Entries += o.Entries
		all.Elsewhere += o.Elsewhere
		all.UsedBytes += o.UsedBytes
		sum(&all.Read.BytesPerSecond, o.Read.BytesPerSecond)
		sum(&all.Read.MeanInFlight, o.Read.MeanInFlight)
		sum(&all.Write.BytesPerSecond, o.Write.BytesPerSecond)
		sum(&all.Write.MeanInFlight, o.Write.MeanInFlight)
	}
	if len(r.IO.Roots) > 0 {
		w := r.DeviceCounters
		all.DeviceReadBytes, all.DeviceWriteBytes = w.ReadBytes, w.WriteBytes
		row("all", all)
	}
	return s
}

// rootRequests is the number of requests of each root from which on times are compared. lagging is
// the factor by which the slowest root's share of requests in flight has to exceed its shares of
// requests and bytes: for a root that is as fast as the others all shares are equal. Both are
// conventions; requests of one entry follow each other and show little more than one.
const (
	rootRequests = 300
	lagging      = 1.5
)

// laggard names the root whose requests take longer than the others', "" if they take about as long
// or too few completed. It does not say whether others would have moved more with more in flight:
// the queue-depth sweep shows that.
func laggard(r *result.Result) string {
	// Reads and writes differ in time, so that roots with different mixes of both cannot be
	// compared.
	for i, of := range []func(*result.Root) *result.RootTraffic{
		func(o *result.Root) *result.RootTraffic { return &o.Read },
		func(o *result.Root) *result.RootTraffic { return &o.Write },
	} {
		var all result.RootTraffic
		var slowest *result.Root
		enough, devices := len(r.IO.Roots) > 1, map[string]bool{}
		for k := range r.IO.Roots {
			t, device := of(&r.IO.Roots[k]), r.IO.Roots[k].Device
			// Two roots on one device, or on unknown devices, cannot be compared.
			enough = enough && t.Requests >= rootRequests && device != "" && !devices[device]
			devices[device] = true
			all.Requests += t.Requests
			all.RequestNS += t.RequestNS
			all.Bytes += t.Bytes
			if slowest == nil || units.OrZero(t.MeanRequestNS) >
				units.OrZero(of(slowest).MeanRequestNS) {
				slowest = &r.IO.Roots[k]
			}
		}
		// The number in flight at a root follows from the time of its requests (Little's law), and
		// not from its capability. The mean of a few requests says nothing of a directory.
		if !enough {
			continue
		}
		t := of(slowest)
		requests := float64(t.Requests) / float64(all.Requests)
		flight := float64(t.RequestNS) / float64(max(1, all.RequestNS))
		moved := float64(t.Bytes) / float64(max(1, all.Bytes))
		if flight < lagging*max(requests, moved) {
			continue
		}
		others := units.Ratio(all.RequestNS-t.RequestNS, all.Requests-t.Requests)
		return fmt.Sprintf("%s lags: its%ss take %s on average, those of the others %s: with %s "+
			"of them it has %s of what is in flight", slowest.Directory, directions[i],
			units.Nanoseconds.Text(t.MeanRequestNS), units.Nanoseconds.Text(others),
			units.Percent(&requests), units.Percent(&flight))
	}
	return ""
}
