package verdict

import (
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// The limits of the rules. They are conventions, each with its reason.
const (
	// Of the workers' time: a fifth of it without requests can hide one in five requests that the
	// storage would have completed.
	idleLimit = 0.20
	// The device's bytes ÷ the run's. A filesystem's own I/O is some percent.
	sharedLimit = 1.20
	// Bytes that a filesystem may read and write for each file that is created or deleted.
	metadataBytes = 64 << 10
	// Of the workers' busy time, and of the window for discards. Removing less would make the run
	// faster by less than 1 ÷ 0.7 = 1.43.
	waitLimit = 0.30
	// Of the cores that the workers can use. Above it runnable threads wait for a core.
	cpuLimit = 0.85
	// Of the workers' busy time in this process. Above it a storage that takes no time would make
	// the run less than twice as fast.
	processLimit = 0.50
	// The latency of requests ÷ the unloaded latency. At 2 a request waits as long as the storage
	// works on it.
	queueLimit = 2.0
	// Requests in flight. With fewer no request waits for another request of the run.
	queueAbove = 1.5
	// Of the window, or of the slots, of a simulated device.
	deviceFull = 0.90
)

// Judge returns the verdict of a result that has everything else. The first rule that applies
// counts. A later rule would mislead where an earlier one applies: what idle workers leave to the
// storage shows nothing of the storage, a device with other users is not the run's, and a process
// that is busy hides what is behind it. The device's busy time decides nothing: a throttle holds
// requests above the device, and a single request keeps an NVMe drive busy.
func Judge(r *result.Result) result.Verdict {
	e := gather(r)
	v := result.Verdict{
		IdleShare: units.Ratio(r.Harness.WorkerIdleNS,
			r.Harness.WorkerIdleNS+r.Harness.WorkerBusyNS),
		CPUShare: e.cpu, HarnessShare: e.harness, Slowdown: e.slowdown,
	}
	if e.storage.Level != "" {
		v.InFlight = &e.inFlight
	}
	slowed := units.OrZero(e.slowdown) >= queueLimit
	say := func(kind, reason string) { v.Kind, v.Reason = kind, e.moved()+": "+reason }
	switch {
	case r.WindowNS <= 0:
		v.Kind, v.Reason = result.NoVerdict, "there was no window in which anything was measured"
	case e.unloaded > idleLimit:
		say(result.LoadLimited, e.loadReason())
	case e.shared > sharedLimit:
		say(result.Shared, e.sharedReason())
	case e.capacity > waitLimit:
		say(result.CapacityLimited, e.capacityReason())
	case e.deletion > waitLimit || e.discards > waitLimit && slowed:
		say(result.DiscardLimited, e.discardReason())
	case units.OrZero(e.cpu) >= cpuLimit, e.process > processLimit, e.inMemory():
		say(result.CPULimited, e.cpuReason())
	case e.missing() != "":
		say(result.Undecided, e.missing())
	case slowed && e.waiting(), e.simulatedFull():
		say(result.StorageLimited, e.storageReason())
	default:
		v.Bound = e.bound()
		say(result.LatencyLimited, e.latencyReason(v.Bound))
	}
	return v
}
