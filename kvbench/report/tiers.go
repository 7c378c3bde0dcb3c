package report

import (
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
	if r.Simulation != nil && r.Simulation.Device == nil && r.ReReads.Operations > 0 {
		s.put("", "of writes and first reads; re-reads are not in it")
	}
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
	s = Section{Title: "Tiers", Topic: "tiers",
		Columns: columns("tier", units.Count, "entries", units.Bytes, "used", "+ being written",
			"+ free", "= capacity", "still leaving", "most held", units.Count, "demoted in",
			units.Bytes, "demoted out", units.Count, "evicted", units.Bytes, "evicted bytes")}
	var kept []string
	for _, l := range r.Tiers {
		if r.CompletionUnit == result.UnitOperation { // without a cache the content is unknown
			if l.Level != "storage" && l.Description != "" {
				s.put("", l.Level+": "+l.Description)
			}
			continue
		}
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
func moved(r *result.Result) Section {
	// First reads and re-reads of operations are not counted apart.
	operations := r.CompletionUnit == result.UnitOperation
	s := Section{Title: "Bytes Moved", Topic: "moved",
		Columns: columns("bytes", units.BytesPerSec, "rate", units.Bytes, "all", "= first time",
			"+ again", "+ between tiers", "+ cut off", "+ failed", "− before", "− in memory")}
	if operations {
		s.Columns[3].Name = "= completed"
	}
	for _, l := range r.Tiers {
		rates := []*float64{l.Read.BytesPerSecond, l.Write.BytesPerSecond}
		for i, n := range []result.TierTraffic{l.Read, l.Write} {
			first, again := any(n.EntryBytes), any(nil) // what is written is new
			if operations {
				again = int64(0)
			} else if i == 0 {
				first, again = l.FirstReads.Bytes, l.ReReads.Bytes
			}
			if n.Bytes+n.EntryBytes > 0 {
				s.add(l.Level+directions[i], rates[i], n.Bytes, first, again,
					n.DemotionBytes, n.CutBytes, n.LostBytes, n.EarlierBytes, n.MemoryBytes)
			}
		}
	}
	s.trim(4)
	return s
}

// roots is the content and the traffic of each of several directories, and the kernel's counts of
// its device.
func roots(r *result.Result) Section {
	s := Section{Title: "Directories", Topic: "roots", Folded: true,
		Columns: columns("directory", units.Count, "entries", "not by hash", units.Bytes, "used",
			units.BytesPerSec, "read", units.Nanoseconds, "per read", units.BytesPerSec, "written",
			units.Nanoseconds, "per write", units.Number, "in flight", units.Bytes, "device read",
			"device wrote", units.Share, "device busy")}
	for _, o := range r.IO.Roots {
		// The device next to the directory: two names of one device explain two equal rows.
		name := o.Directory
		if o.Device != "" {
			name += " (" + o.Device + ")"
		}
		// Reads and writes share the device, which has both in flight.
		var flying any // unknown
		if o.Read.MeanInFlight != nil || o.Write.MeanInFlight != nil {
			flying = units.OrZero(o.Read.MeanInFlight) + units.OrZero(o.Write.MeanInFlight)
		}
		s.add(name, o.Entries, o.Elsewhere, o.UsedBytes, o.Read.BytesPerSecond,
			o.Read.MeanRequestNS, o.Write.BytesPerSecond, o.Write.MeanRequestNS, flying,
			o.DeviceReadBytes, o.DeviceWriteBytes, o.DeviceBusyShare)
	}
	return s
}
