package tracing

import "fmt"

// Application has the bytes that a program read and wrote by its own counters, from the device or from a
// cache. The comparison with a trace shows whether a cache served the reads. All fields are optional.
type Application struct {
	ReadBytes, WriteBytes int64
	// Remote: the storage is on a network, and its requests use no block device of this host.
	Remote bool
}

// Diagnosis returns one sentence about what limited the run, as far as the counters of the device show it.
func (t *Trace) Diagnosis(app Application) string {
	p := &t.Capture
	if p.Status != StatusTraced {
		return "unknown: requests were not traced"
	}
	window := float64(max(1, p.WindowNS))
	depth := p.Read.MeanDepth + p.Write.MeanDepth
	busy, least := 1-float64(p.IdleNS)/window, ""
	if !p.IdleKnown {
		// Sequential requests give the largest possible busy time at this depth.
		busy, least = min(1, depth), "at least "
	}
	requests, queued, served := p.Requests(), p.Read.Q2DNS+p.Write.Q2DNS, p.Read.D2CNS+p.Write.D2CNS
	each := func(ns int64) string { // per request
		return Microseconds(float64(ns) / float64(requests) / 1000)
	}
	if app.ReadBytes == 0 && p.Device != "" { // calls on files of this device
		app.ReadBytes = int64(t.VFSReadSize.Sum * 1024)
	}
	switch {
	case app.Remote || p.Device == "" && len(p.Members) == 0 && app.ReadBytes+app.WriteBytes > 0:
		return "unknown: the storage is no block device of this host"
	case requests == 0 && app.ReadBytes+app.WriteBytes+t.VFSRead.Count+t.VFSWrite.Count > 0:
		return "cache-served: no request reached the device, a cache in memory served all of them"
	case requests == 0:
		return "idle: no request reached the device"
	case p.CacheServed(app):
		return fmt.Sprintf("cache-served: %.0f%% of the application's bytes were read from the device, "+
			"the others from the page cache", 100*float64(p.OwnReadBytes())/float64(app.ReadBytes))
	case queued > served:
		return fmt.Sprintf("scheduler-bound: requests waited %s for their dispatch and took %s "+
			"at the device", each(queued), each(served))
	case busy < 0.7:
		return fmt.Sprintf("host-bound: no request was in flight for %s%.0f%% of the window; load, "+
			"program, filesystem or processor did not submit more requests", least, 100*(1-busy))
	}
	inFlight := " (lost completions hide for how long there was none)"
	if p.IdleKnown {
		inFlight = fmt.Sprintf(" (at least one for %.0f%% of the window)", 100*busy)
	}
	return fmt.Sprintf("device-bound: %.1f requests were in flight on average%s; a request took %s at "+
		"the device on average", depth, inFlight, each(served))
}

// cacheShare: if the device moved less than this share of the application's bytes, a cache served the
// others.
const cacheShare = 0.95

// CacheServed reports whether the device read much less than the application did.
func (c *Capture) CacheServed(app Application) bool {
	return app.ReadBytes > 0 && float64(c.OwnReadBytes()) < cacheShare*float64(app.ReadBytes)
}

// OwnReadBytes returns the bytes that the device read for the watched processes. Requests at the members
// of a stacked device are often queued by the kernel, for no process, so all of them count.
func (c *Capture) OwnReadBytes() int64 {
	if c.Filter == FilterDevice && len(c.Members) == 0 {
		return c.Read.Bytes - c.Read.ForeignBytes
	}
	return c.Read.Bytes
}

// Microseconds formats a time of a histogram for people.
func Microseconds(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%.3g s", us/1e6)
	case us >= 1e3:
		return fmt.Sprintf("%.3g ms", us/1e3)
	}
	return fmt.Sprintf("%.3g µs", us)
}
