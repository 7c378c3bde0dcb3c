package record

import (
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

func (b *builder) simulation(r *result.Result) {
	if r.Simulation == nil {
		return
	}
	s := *r.Simulation
	r.Simulation = &s
	s.Notice = result.SimulatedNotice
	if s.Device == nil {
		r.Notice = result.SimulatedNotice + "; operations took no time, so the mix is that of infinitely fast storage, not of an overloaded real run"
		return
	}
	r.Notice = result.SimulatedNotice + "; times are those of the " + s.Device.String()
	s.DeviceBusyShare = units.Ratio(b.info.MediumBusy.Seconds(), b.window.Seconds())
	total := r.Load["total"]
	s.QueueGrowth = b.perSecond(float64(total.Queued + total.InFlight - total.CarriedIn))
	fresh := float64(total.Offered - total.CarriedIn)
	if r.Workload.Users > 0 && fresh > 0 && r.Summary.AutoscalingSummary == nil { // else the number of users is not one number
		users := float64(r.Workload.Users)
		s.SustainedUsers = new(min(users, users*float64(total.Completed)/fresh))
	}
}
