package report

import (
	"fmt"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// sizes are those of the entries that were moved: latencies per entry mean nothing without them.
// Each tier has its own, since large entries go past a small tier.
func sizes(r *result.Result) Table {
	t := Table{Topic: "entry size",
		Columns: head("", units.Count, "entries", units.Bytes, "mean", "p50", "p95", "largest")}
	for _, l := range r.Tiers {
		of := r.Latency.Levels[l.Level]
		for i, d := range []result.Distribution{of.Read.Size, of.Write.Size} {
			t.some(l.Level+directions[i], d.Count, d.Mean, d.P50, d.P95, d.Max)
		}
	}
	return t
}

// directions name the two of a tier.
var directions = [...]string{" read", " write"}

// tiers are what each level holds and keeps, in parts that add up to its capacity. Room that writes
// in flight have claimed is one of them, because entries are evicted for it before it is used. What
// such entries still take until they have left is room of these writes already, so that it stands
// behind the sum.
func tiers(r *result.Result) Table {
	t := Table{Topic: "tiers",
		Columns: head("", units.Count, "entries", units.Bytes, "used", "+ being written", "+ free",
			"= capacity", "still leaving", units.Count, "demoted in", "evicted")}
	if r.CompletionUnit == result.UnitOperation {
		return t // without a cache their content is unknown
	}
	for _, l := range r.Tiers {
		held := l.UsedBytes - l.LeavingBytes
		free, capacity := any("unlimited"), any(nil)
		if c := l.CapacityBytes; c != nil {
			free, capacity = *c-held-l.ClaimedBytes, *c
		}
		t.add(l.Level, l.Entries, held, l.ClaimedBytes, free, capacity, l.LeavingBytes,
			l.DemotedIn.Entries, l.Evicted.Entries)
	}
	t.trim(3)
	return t
}

// moved is what each tier moved, and what became of it: its parts add up to the whole in each row,
// as the signs in the heading say, to the byte in the JSON and to three digits here. Parts that no
// tier has are left out. What was demoted, promoted or copied from another tier is among the bytes,
// because it loads a tier as any other operation does; what the deadline cut off is, because the
// device has moved it. Checkpoints have the rates of their rules.
func moved(r *result.Result) Table {
	t := Table{Columns: head("bytes", units.BytesPerSec, "rate", units.Bytes, "all", "= first time",
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
				t.add(l.Level+directions[i], rates[i], n.Bytes, first, again,
					n.DemotionBytes, n.CutBytes, n.LostBytes, n.EarlierBytes, n.MemoryBytes)
			}
		}
	}
	t.trim(5)
	if r.CompletionUnit == result.UnitOperation { // first reads and re-reads are not counted apart
		t.Topic, t.Columns[3].Text = "tiers", "= completed"
		t.drop(4)
	}
	return t
}

// roots is what each of several directories had and moved, and what the kernel counted of its
// device. The last row is the sum; times and shares have none. The sum of the devices comes from the
// device counters, which have each device once, also where directories share it.
func roots(r *result.Result) Table {
	t := Table{Topic: "roots", Columns: head("", units.Count, "entries", "not by hash", units.Bytes,
		"used", units.BytesPerSec, "read", units.Nanoseconds, "per request", units.BytesPerSec,
		"written", units.Nanoseconds, "per request ", units.Number, "in flight", units.Bytes,
		"device read", "wrote", units.Share, "busy")}
	var all result.Root
	// The window is the same for all of them, so that rates and means in flight add up.
	sum := func(to **float64, of *float64) {
		if of != nil {
			*to = new(units.OrZero(*to) + *of)
		}
	}
	// Reads and writes wait for the same device, which has both in flight.
	row := func(name string, o result.Root) {
		flying := o.Read.MeanInFlight
		sum(&flying, o.Write.MeanInFlight)
		t.add(name, o.Entries, o.Elsewhere, o.UsedBytes, o.Read.BytesPerSecond,
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
		for _, d := range []struct{ to, of *result.RootTraffic }{{&all.Read, &o.Read},
			{&all.Write, &o.Write}} {
			sum(&d.to.BytesPerSecond, d.of.BytesPerSecond)
			sum(&d.to.MeanInFlight, d.of.MeanInFlight)
		}
	}
	if len(r.IO.Roots) > 0 {
		w := r.DeviceWitness
		all.DeviceReadBytes, all.DeviceWriteBytes = w.ReadBytes, w.WriteBytes
		row("all", all)
	}
	return t
}

// rootRequests is from how many requests of each root on their times are compared, and lagging how
// much larger the slowest root's share of what is in flight has to be than that of the requests and
// that of their bytes: a root that is as fast as the others has as much of all. Both are
// conventions; requests of one entry follow each other and tell little more than one.
const (
	rootRequests = 300
	lagging      = 1.5
)

// laggard says of which root the requests take longer than those of the others, "" where they take
// about as long or too few ended. It says no more than that: whether others would have moved more
// with more in flight is the ladder's to tell.
func laggard(r *result.Result) string {
	// Reads and writes take times of their own, so that roots with another mix of both would look
	// slower than they are.
	for i, of := range []func(*result.Root) *result.RootTraffic{
		func(o *result.Root) *result.RootTraffic { return &o.Read },
		func(o *result.Root) *result.RootTraffic { return &o.Write },
	} {
		var all result.RootTraffic
		var slowest *result.Root
		enough, devices := len(r.IO.Roots) > 1, map[string]bool{}
		for k := range r.IO.Roots {
			t, device := of(&r.IO.Roots[k]), r.IO.Roots[k].Device
			// Of two on one device, or on unknown devices, none can be the slower one.
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
		// How many are in flight at a root follows from how long each takes there (Little's law),
		// and not from what the root could take. The mean of a few says nothing of a directory.
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
