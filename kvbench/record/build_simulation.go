package record

import (
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
)

// SimulationInfo is what the engine knows of a run in virtual time.
type SimulationInfo struct {
	Device *tiers.DeviceModel // nil: all storage was infinitely fast
	Busy   time.Duration      // for which the device's medium was in use
	Rows   int64              // of the I/O trace
	Wall   time.Duration      // real time that the simulation took
}

func (b *builder) simulation(r *result.Result) {
	s := b.info.Simulation
	if s == nil {
		return
	}
	out := &result.Simulation{Notice: result.SimulatedNotice, TraceRows: s.Rows, WallNS: int64(s.Wall)}
	r.Simulation = out
	if s.Device == nil {
		r.Notice = result.SimulatedNotice + "; operations took no time, so the mix is that of infinitely fast storage, not of an overloaded real run"
		return
	}
	d := result.SimulatedDevice(*s.Device)
	out.Device = &d
	r.Notice = result.SimulatedNotice + "; times are those of the " + d.String()
	out.DeviceBusyShare = units.Ratio(s.Busy.Seconds(), b.window.Seconds())
	total := r.Load["total"]
	out.QueueGrowth = b.perSecond(float64(total.Queued + total.InFlight - total.CarriedIn))
	fresh := float64(total.Offered - total.CarriedIn)
	if b.info.Users > 0 && fresh > 0 && b.info.Autoscale == nil { // else the number of users is not one number
		users := float64(b.info.Users)
		out.SustainedUsers = new(min(users, users*float64(total.Completed)/fresh))
	}
}
