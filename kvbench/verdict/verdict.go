package verdict

import (
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// The limits of the rules. They are conventions.
const (
	// idleLimit is a share of the workers' time. At 0.2 the storage might have completed a quarter more
	// requests with more load.
	idleLimit = 0.20
	// sharedLimit is the device's bytes ÷ the run's bytes, and its requests ÷ the run's. The filesystem's own I/O
	// is some percent.
	sharedLimit = 1.20
	// metadataBytes is the I/O in bytes that a filesystem may add per created or deleted file.
	metadataBytes = 64 << 10
	// metadataRequests is the I/O requests that a filesystem may add per created or deleted file. ext4 added 3.5
	// to 6 for files of 8 MiB.
	metadataRequests = 8
	// blockBytes is the usual smallest request of a process.
	blockBytes = 4 << 10
	// waitLimit is a share of the workers' busy time; for discards a share of the window. Without a wait
	// of 0.3 the run would be 1 ÷ 0.7 = 1.43 times as fast.
	waitLimit = 0.30
	// cpuLimit is a share of the cores that the workers can use. Above it runnable threads wait for a
	// core.
	cpuLimit = 0.85
	// processLimit is a share of the workers' busy time. Above it a storage that takes no time would
	// make the run less than twice as fast.
	processLimit = 0.50
	// queueLimit is the latency ÷ the unloaded latency. At 2 a request waits as long as the storage
	// works on it.
	queueLimit = 2.0
	// slowdownLeast is the least latency ÷ unloaded latency: requests that wait for each other are not faster
	// than one alone. Noise makes the ratio somewhat less than 1.
	slowdownLeast = 0.8
	// queueAbove is a mean number of requests in flight. Below it requests hardly wait for each other.
	queueAbove = 1.5
	// deviceFull is a share of the window, or of the slots of a simulated device.
	deviceFull = 0.90
)

// Judge returns the verdict of a result. All other sections of the result must be complete.
//
// The first rule that applies counts, because an earlier rule makes a later one misleading. With idle
// workers the load is too small to measure the storage. With other users of the device its speed is not
// the run's. A busy process hides the speed of the storage. The device's busy time is in no rule: a
// throttle holds requests above the device, and a single request keeps an NVMe drive busy.
func Judge(r *result.Result) result.Verdict {
	e := gather(r)
	v := result.Verdict{
		IdleShare: units.Ratio(r.Harness.WorkerIdleNS,
			r.Harness.WorkerIdleNS+r.Harness.WorkerBusyNS),
		CPUShare: e.cpu, CPUCores: e.cores(), HarnessShare: e.harness, Slowdown: e.slowdown,
	}
	if e.storage.Level != "" {
		v.InFlight = &e.inFlight
	}
	slowed := units.OrZero(e.slowdown) >= queueLimit
	// A thread of plain I/O only submits and reaps. If the kernel blocks it, as a throttle does, its workers are
	// in no operation, but the processors are idle: only the CPU time shows that this process is the limit.
	working := e.process > processLimit && r.PlainIO == nil
	say := func(kind, reason string) { v.Kind, v.Reason = kind, e.moved()+": "+reason }
	switch {
	case r.Status == result.StatusFailed: // its load was another one than that of the parameters
		v.Kind, v.Reason = result.NoVerdict, "the trial failed"
	case r.WindowNS <= 0:
		v.Kind, v.Reason = result.NoVerdict, "there was no window in which anything was measured"
	case e.idle > idleLimit:
		say(result.LoadLimited, e.loadReason())
	case max(e.shared, e.requests) > sharedLimit:
		say(result.Shared, e.sharedReason())
	case e.capacity > waitLimit:
		say(result.CapacityLimited, e.capacityReason())
	case r.IO.Mode == result.IOMemory:
		say(e.inMemoryTiers())
	case e.deletion > waitLimit || e.discards > waitLimit && slowed:
		say(result.DiscardLimited, e.discardReason())
	case units.OrZero(e.cpu) >= cpuLimit, working, e.inMemory():
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
