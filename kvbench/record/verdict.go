package record

import (
	"fmt"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// Shares from which a verdict falls.
const (
	idleLimit = 0.20 // workers without a request
	cpuLimit  = 0.85 // process CPU of the cores that it may use
	waitLimit = 0.30 // host and buffer wait of the workers' busy time
)

// verdictInput is what a verdict is made of. Zero means not measured, except in the measured times.
type verdictInput struct {
	window           time.Duration
	idle, busy       time.Duration // summed over workers
	cpu              time.Duration
	cores            float64
	host, bufferWait time.Duration // summed over workers
}

// judge tells load from harness from storage, in this order: idle workers mean that neither of the others was tried.
func judge(in verdictInput) result.Verdict {
	v := result.Verdict{
		IdleShare:     units.Ratio(in.idle, in.idle+in.busy),
		CPUShare:      units.Ratio(float64(in.cpu), in.cores*float64(in.window)),
		HostWaitShare: units.Ratio(in.host+in.bufferWait, in.busy),
	}
	switch {
	case in.window <= 0:
		v.Kind, v.Reason = result.NoVerdict, "there was no window in which anything could be measured"
	case units.OrZero(v.IdleShare) > idleLimit:
		v.Kind = result.LoadLimited
		v.Reason = fmt.Sprintf("workers had no request for %s of the window (limit %s): the load asked for less than the "+
			"storage could give", units.Percent(v.IdleShare), units.Percent(new(idleLimit)))
	case units.OrZero(v.CPUShare) >= cpuLimit:
		v.Kind = result.HarnessLimited
		v.Reason = fmt.Sprintf("the process used %s of the %s cores that it may use (limit %s): more cores would move more bytes",
			units.Percent(v.CPUShare), units.Number.Text(in.cores), units.Percent(new(cpuLimit)))
	case units.OrZero(v.HostWaitShare) > waitLimit:
		v.Kind = result.HarnessLimited
		v.Reason = fmt.Sprintf("copying, verifying and waiting for buffers took %s of the workers' busy time (limit %s): the "+
			"storage waited for the harness", units.Percent(v.HostWaitShare), units.Percent(new(waitLimit)))
	default:
		v.Kind = result.StorageLimited
		v.Reason = fmt.Sprintf("workers were busy (idle %s), the CPU had room (%s used) and host and buffer wait took %s of busy time",
			units.Percent(v.IdleShare), units.Percent(v.CPUShare), units.Percent(v.HostWaitShare))
	}
	return v
}
