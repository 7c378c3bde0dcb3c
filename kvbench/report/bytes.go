package report

import (
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
		return t // without a cache nobody tells what is in them
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
// tier has are left out. Demotions are among the bytes, because they load a tier as any other
// operation does; what the deadline cut off is, because the device has moved it.
func moved(r *result.Result) Table {
	t := Table{Columns: head("bytes", units.BytesPerSec, "rate", units.Bytes, "all",
		"= first time", "+ again", "+ demoted", "+ cut off", "+ failed", "− before")}
	for _, l := range r.Tiers {
		for i, n := range []result.TierTraffic{l.Read, l.Write} {
			first, again := any(n.EntryBytes), any(nil) // what is written is new
			if i == 0 && r.CompletionUnit != result.UnitOperation {
				first, again = l.FirstReads.Bytes, l.ReReads.Bytes
			}
			if n.Bytes+n.EntryBytes > 0 {
				t.add(l.Level+directions[i], n.BytesPerSecond, n.Bytes, first, again,
					n.DemotionBytes, n.CutBytes, n.LostBytes, n.EarlierBytes)
			}
		}
	}
	t.trim(5)
	if r.CompletionUnit == result.UnitOperation { // nobody notes which of them it has read before
		t.Topic, t.Columns[3].Text = "tiers", "= completed"
		t.drop(4)
	}
	return t
}
