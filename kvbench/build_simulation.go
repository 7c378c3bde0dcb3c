package kvbench

import "time"

// SimulationInfo is what the engine knows of a run in virtual time.
type SimulationInfo struct {
	Device *DeviceModel  // nil: all storage was infinitely fast
	Busy   time.Duration // for which the device's medium was in use
	Rows   int64         // of the I/O trace
	Wall   time.Duration // real time that the simulation took
}

// SimulationResult marks a result that no storage has had a part in.
type SimulationResult struct {
	Notice    string           `json:"notice"`
	Device    *SimulatedDevice `json:"device"` // null: infinitely fast
	TraceRows int64            `json:"io_trace_rows"`
	WallNS    int64            `json:"wall_ns"`
	// DeviceBusyShare is the share of the window in which bytes passed the device's medium (two media when duplex).
	DeviceBusyShare *float64 `json:"device_busy_share"`
	// SustainedUsers is the number of users whose requests the device would have completed as fast as they came, were
	// they like these on average: all of them, or users × completed ÷ offered in the window. Null with an autoscaler, which
	// finds it itself.
	SustainedUsers *float64 `json:"sustained_users"`
	// QueueGrowth is how fast the backlog grew over the window.
	QueueGrowth *float64 `json:"queue_growth_requests_per_s"`
}

// SimulatedNotice stands in every output of a simulation.
const SimulatedNotice = "simulated in virtual time, no storage was touched"

func (b *builder) simulation(r *Result) {
	s := b.info.Simulation
	if s == nil {
		return
	}
	out := &SimulationResult{Notice: SimulatedNotice, TraceRows: s.Rows, WallNS: int64(s.Wall)}
	r.Simulation = out
	if s.Device == nil {
		r.Notice = SimulatedNotice + "; operations took no time, so the mix is that of infinitely fast storage, not of an overloaded real run"
		return
	}
	d := SimulatedDevice(*s.Device)
	out.Device = &d
	r.Notice = SimulatedNotice + "; times are those of the " + d.String()
	out.DeviceBusyShare = ratio(s.Busy.Seconds(), b.window.Seconds())
	total := r.Load["total"]
	out.QueueGrowth = b.perSecond(float64(total.Queued + total.InFlight - total.CarriedIn))
	fresh := float64(total.Offered - total.CarriedIn)
	if b.info.Users > 0 && fresh > 0 && b.info.Autoscale == nil { // else the number of users is not one number
		users := float64(b.info.Users)
		out.SustainedUsers = new(min(users, users*float64(total.Completed)/fresh))
	}
}
