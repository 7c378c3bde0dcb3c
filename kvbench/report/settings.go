package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// settings has the settings of the run, also those that make results incomparable: I/O mode, write
// device time, deviations from the closed division.
func settings(r *result.Result) (s Section) {
	s.Title, s.Folded = "Settings", true
	if m := r.Model; m.RankBytesPerToken > 0 && r.CompletionUnit != result.UnitOperation {
		name := cmp.Or(m.Name, m.Key)
		if m.StoredAs != "" {
			name += " in " + m.StoredAs
		}
		s.line("model", "%s, %s per token on %s, tensor parallel %d", name,
			bytes(m.RankBytesPerToken), m.Whose(), max(m.TensorParallel, 1))
	}
	s.workload(r)
	s.Lines = append(s.Lines, Opening(r).Lines...)
	// Rates are of the window; the total is the user's waiting time.
	window := ns(r.WindowNS)
	if r.Simulation != nil {
		window += " of virtual time"
	}
	window += " of " + ns(r.ElapsedNS) + " in all"
	if r.WarmupNS > 0 {
		window += ", warm-up " + ns(r.WarmupNS)
	}
	s.put("window", window+", drain "+ns(r.DrainNS))
	s.storage(r)
	// Parameters that the user changed: the numbers are then not those of the imitated engine.
	if name, its, others := r.Imitated(); name != "" {
		s.line("engine", "%s: %s", name, strings.Join(its, ", "))
		if len(others) > 0 {
			s.line("", "not the engine's: %s", strings.Join(others, ", "))
		}
	}
	// Other benchmarks than an option's have no closed form.
	if r.Option != nil {
		var names []string
		for _, d := range r.DiffersFromClosed {
			names = append(names, fmt.Sprintf("%s %v (closed %v)", d.Name, d.Value, d.Closed))
		}
		s.put("differs", strings.Join(names, ", "))
	}
	if p := r.Precondition; p != nil {
		s.line("precond.", "%s written in %s, the last rounds at %s on average, %s apart",
			bytes(p.Bytes), ns(p.DurationNS), rate(units.Finite(stat.Mean(p.LastRates, nil))),
			units.Share.Text(p.Spread))
	}
	s.input(r)
	return s
}

// workload describes the load. A benchmark without requests has no arrivals and no turns, and then
// their words are left out.
func (s *Section) workload(r *result.Result) {
	w := r.Workload
	var parts []string
	if w.Users > 0 {
		parts = append(parts, units.Plural(w.Users, "user"))
	}
	if w.Workers > 0 { // else it ended before there were any
		parts = append(parts, units.Plural(w.Workers, "worker"))
	}
	if r.CompletionUnit != result.UnitOperation {
		for _, p := range [][3]string{{"", w.Arrival, ""}, {"", w.Turns, " turns"},
			{"generation ", w.GenerationMode, ""}, {"decode reads ", w.DecodeReads, ""}} {
			if p[1] != "" {
				parts = append(parts, p[0]+p[1]+p[2])
			}
		}
	}
	s.put("load", strings.Join(append(parts, fmt.Sprint("seed ", r.Seed)), ", "))
	// A profile's values count more than its name: versions of a name may differ.
	var set []string
	origin := ""
	for _, p := range r.Parameters {
		if strings.HasPrefix(p.Origin, "profile ") {
			origin = p.Origin
			name := strings.TrimPrefix(p.Name, "sessions.")
			set = append(set, fmt.Sprintf("%s %v", name, p.Value))
		}
	}
	if origin != "" {
		s.put("users", origin+" sets "+strings.Join(set, ", "))
	}
}

// Opening reports what is known of a load before the run: what it draws its requests from, the features in
// force, and the simulated server.
func Opening(r *result.Result) (s Section) {
	w, p := &r.Workload, r.Workload.Population
	if p != nil && p.Contexts > 0 {
		what, each := units.Plural(p.Contexts, "request"), ""
		switch {
		case p.Classes != nil:
			each = "largest "
			var classes []string
			for _, class := range result.Classes {
				classes = append(classes, count(p.Classes[class])+" "+class)
			}
			what = units.Plural(p.Contexts, "user") + ": " + strings.Join(classes, ", ")
		case p.Conversations > 0:
			what = units.Plural(p.Conversations, "conversation") + ", " + units.Plural(p.Contexts, "turn")
		}
		if p.Partial {
			what = "the first " + what
		}
		if r.Ranks > 1 && len(r.MergedRanks) == 0 {
			what = fmt.Sprintf("rank %d has %s", r.Rank, what)
		}
		token := float64(r.Model.RankBytesPerToken * int64(max(1, r.Model.StoringRanks)))
		low, high, mean := float64(p.MinContextTokens), float64(p.MaxContextTokens), units.OrZero(p.MeanContext)
		s.line("population", "%s; %scontexts of %s to %s tokens, mean %s (%s to %s, mean %s); mean %sanswer %s",
			what, each, count(low), count(high), count(math.Round(mean)), bytes(low*token), bytes(high*token),
			bytes(mean*token), each, count(math.Round(units.OrZero(p.MeanAnswer))))
	}
	if w.GPUs == 0 {
		return s
	}
	s.line("features", "%s", cmp.Or(strings.Join(w.Features, ", "), "none"))
	server := units.Plural(w.GPUs, "GPU") + ", no gpu tier"
	if w.GPUBytes > 0 {
		server = fmt.Sprintf("%d × %s", w.GPUs, bytes(w.GPUBytes))
	}
	s.line("server", "%s, TP %d", server, max(r.Model.TensorParallel, 1))
	return s
}

// storage reports the place of the entries and the I/O settings.
func (s *Section) storage(r *result.Result) {
	if r.Objects != nil {
		s.objectStore(r)
		return
	}
	io := r.IO.Mode + " I/O"
	if r.IO.Engine == "uring" {
		io += " by io_uring"
	}
	io += fmt.Sprintf(", %s chunks, depth %d", bytes(r.IO.ChunkBytes), r.IO.Depth)
	if r.Simulation == nil {
		dir := cmp.Or(r.IO.CacheDir, "no directory")
		if r.IO.CacheDir == "" && len(r.MergedRanks) > 1 {
			dir = "a directory of each rank's own"
		}
		if r.IO.Mode == result.IOMemory {
			dir, io = "no storage tier", fmt.Sprintf("%s chunks, depth %d", bytes(r.IO.ChunkBytes), r.IO.Depth)
		} else {
			io += ", write device time is " + r.IO.WriteDevice
		}
		s.put("storage", strings.NewReplacer("\n", `\n`, ",", ", ").Replace(dir))
	}
	if r.IO.MaxConcurrentAllocs > 0 {
		io += fmt.Sprintf(", %d writes at a time", r.IO.MaxConcurrentAllocs)
	}
	s.put(map[bool]string{true: "storage"}[r.Simulation != nil], io)
}

// input describes the trace that was read. Malformed rows are reported even when there are none.
func (s *Section) input(r *result.Result) {
	in, lines := r.Input, Recording(r)
	if in == nil {
		return
	}
	parts := []string{lines[0]}
	// Conversations are texts, sessions of agents are not.
	if in.Tokenizer != "" {
		parts = append(parts, "tokens by "+in.Tokenizer)
	} else if in.Sessions > 0 {
		parts = append(parts, units.Plural(in.Sessions, "session"),
			fmt.Sprintf("up to %s live", count(in.LiveSessions)))
	}
	s.put("input", strings.Join(parts, ", "))
	s.put("", strings.Join(lines[1:], ""))
}

// Recording says what became of the rows of a recording: how many were replayed, left out or changed, and why. It
// names the first odd row. It returns nil for a run without a recording.
func Recording(r *result.Result) []string {
	in := r.Input
	if in == nil {
		return nil
	}
	replayed, total := "replayed", in.Rows
	if r.Replay != nil { // some of its rows need no I/O, see its section
		replayed = "read"
	}
	if r.PartOfInput() && in.TotalRows != nil {
		total = *in.TotalRows
	}
	text := units.Plural(total, "row")
	for _, of := range []struct {
		rows int64
		what string
	}{{in.Rows - in.Failed - in.Malformed - in.Skipped, replayed}, {in.Failed, "without an answer"},
		{in.Malformed, "malformed"}, {in.Skipped, "before the start of the replay"},
		{in.Unordered, "earlier than a row before them, with which they come"},
		{in.Interpreted, "interpreted (" + strings.Join(slices.Compact(slices.Sorted(slices.Values(in.Notes))), "; ") + ")"},
		{total - in.Rows, "not reached when the run ended"}} {
		if of.rows > 0 || of.what == "malformed" {
			text += ", " + count(of.rows) + " " + of.what
		}
	}
	if r.PartOfInput() && in.TotalRows == nil {
		text += ", the others not reached when the run ended"
	}
	lines := []string{text}
	if len(in.Problems) > 0 {
		lines = append(lines, "the first odd row is "+in.Problems[0])
	}
	return lines
}

// simulation reports the model of a simulated device and its load. A queue that grows without end means
// that the device is oversubscribed. With an autoscaler the section has no sustained users, because
// section autoscaling has them.
func simulation(r *result.Result) (s Section) {
	m := r.Simulation
	if m == nil {
		return s
	}
	s.Title, s.Topic = "Simulation", "simulated"
	if m.SustainedUsers != nil {
		s.put("", sustainedUsers(r))
	}
	if m.Device == nil {
		s.put("", "storage was infinitely fast: latencies are 0 and rates are those of the load")
	} else {
		device := m.Device.String()
		if n := len(r.MergedRanks); n > 1 {
			device = fmt.Sprintf("each of the %d ranks has a device of its own: %s", n, device)
		}
		s.put("", device)
	}
	s.row(units.Share, "medium busy", m.DeviceBusyShare, units.Count, "users", r.Workload.Users,
		"sustained users", m.SustainedUsers, units.Number, "queue growth, requests/s",
		m.QueueGrowth, units.Count, "I/O trace rows", m.TraceRows, units.Nanoseconds, "computed in",
		m.WallNS)
	return s
}

// sustainedUsers reports how many users a simulated device sustains.
func sustainedUsers(r *result.Result) string {
	return fmt.Sprintf("it would sustain %d of %s (a user's request is complete, on average, before the next one "+
		"is made)", *r.Simulation.SustainedUsers, units.Plural(r.Workload.Users, "user"))
}

// autoscaling has a row for each round: users and workers, the storage's rates, and the decision.
// The line says whether the sustained users are the answer or only the last step of the search.
func autoscaling(r *result.Result) (s Section) {
	a := r.Autoscaler
	if a == nil {
		return s
	}
	s = Section{Title: "Autoscaling", Topic: "autoscaler",
		Note: "Latencies are per 100 MiB; noise is two standard errors of the rate.",
		Columns: columns("round", units.Seconds, "ended at", units.Count, "users", "workers",
			"goroutines", units.BytesPerSec, "storage rate", "noise", units.Milliseconds,
			"read p95", "write p95", units.Share, "saturation", units.Count, "then users",
			units.Number, "decision")}
	how := "the window ended before it was found"
	switch {
	case a.Found:
		how = "found"
	case r.EndedBy == result.EndedByCapacity:
		how = "the limit of users, at which the search ended"
	}
	s.line("", "%s: %d users sustained (%s), at most %d ran, at most %s, %s from %d to %d users",
		a.Mode, a.SustainedUsers, how, a.PeakUsers, rate(a.PeakRate),
		units.Plural(a.Rounds, "round"), a.InitialUsers, a.FinalUsers)
	for i, x := range a.History {
		s.add(i+1, x.AtS, x.Users, x.Workers, x.Goroutines, x.BytesPerSecond, x.Noise, x.ReadP95,
			x.WriteP95, x.Saturation, x.NextUsers, x.Decision)
	}
	// The text lists a few rounds, evenly spaced, with the first and the last: they show the search.
	n := len(s.Rows)
	few := min(n, 9)
	s.Short = &Section{Columns: s.Columns}
	for i := range few {
		s.Short.add(s.Rows[i*(n-1)/max(few-1, 1)]...)
	}
	if n > 0 {
		s.Short.line("", "%d of %d rounds, all are in the JSON; latencies are per 100 MiB", few, n)
	}
	return s
}

// replay counts the outcomes of the rows of an I/O trace: reads of evicted and of never written
// entries, and writes larger than the tier, cost no I/O.
func replay(r *result.Result) (s Section) {
	p := r.Replay
	if p == nil {
		return s
	}
	s = Section{Title: "Replay", Topic: "replay", Note: "Reads of evicted and of never written " +
		"entries, and writes larger than the tier, cost no I/O. Rows that were not selected are " +
		"of other tiers or phases."}
	s.row(units.Count, "rows", p.Rows, "not selected", p.Skipped, "reads", p.Reads,
		"writes", p.Writes, "deletes", p.Deletes, "reads of evicted", p.EvictedReads,
		"reads of never written", p.UnwrittenReads, "deletes of unknown", p.UnknownDeletes,
		"overwrites", p.Overwrites, "too large", p.TooLarge, "deleted for capacity", p.Evictions,
		units.Nanoseconds, "largest delay", p.LateNS)
	return s
}

// clients lists the hosts and filesystems of a trial of several ranks, and the slowest and the fastest
// rank.
func clients(r *result.Result) (s Section) {
	c := r.Clients
	if c == nil {
		return s
	}
	s.Title, s.Topic, s.Folded = "Clients", "clients", true
	// Hosts first: an outlier among the ranks is often on an outlier among the hosts.
	opened, results := "", "all"
	if c.StartSkewNS != nil {
		opened = ", windows " + c.Opened()
	}
	if n := len(c.PerRank); n < r.Ranks { // sums of some ranks look like sums of all
		results = fmt.Sprint(n)
	}
	s.line("", "%s on %s%s, results of %s", units.Plural(r.Ranks, "rank"),
		units.Plural(len(c.Hosts), "host"), opened, results)
	// One line each: a run on many hosts is read for the one that is missing.
	for _, h := range c.Hosts {
		s.line("", "%s: ranks %s", h.Name, units.List(h.Ranks))
	}
	for _, f := range c.Filesystems {
		what := cmp.Or(f.Type, "filesystem")
		if len(f.Directories) > 0 { // one of several
			what += " of " + strings.Join(f.Directories, ", ")
		}
		s.line("", "%s: ranks %s with %s of it", what, units.List(f.Ranks), bytes(f.CapacityBytes))
	}
	// Rates are sums of each rank's bytes ÷ its own window, like MLPerf Storage's: the common time
	// shows how much of that overlapped.
	if c.CommonWindowNS != nil {
		s.line("", "all of them measured for %s; a sum of rates is each rank's own over its window",
			ns(*c.CommonWindowNS))
	}
	if len(c.PerRank) > 1 {
		// By all bytes: a rank that reads much may write little, and one direction alone does not
		// show the slow rank.
		moved := func(r result.ClientRank) float64 {
			return units.OrZero(r.ReadBytesPerSecond) + units.OrZero(r.WriteBytesPerSecond)
		}
		byRate := func(a, b result.ClientRank) int { return cmp.Compare(moved(a), moved(b)) }
		slow, fast := slices.MinFunc(c.PerRank, byRate), slices.MaxFunc(c.PerRank, byRate)
		if moved(fast) > 0 { // else there is no storage tier
			one := func(r result.ClientRank) string {
				on := map[bool]string{true: " on " + r.Host}[r.Host != ""] // a simulation has no host
				return fmt.Sprintf("rank %d%s with %s", r.Rank, on, rate(moved(r)))
			}
			s.line("", "slowest %s, fastest %s", one(slow), one(fast))
		}
	}
	// Last, and in capitals: the sums above are of fewer clients than they seem to be. The process
	// is named, because its log and the kernel's may say more.
	for _, l := range c.Lost {
		s.line("", "LOST rank %d on %s (pid %d): it %s, %s", l.Rank, l.Host, l.PID, l.Why, l.Stage)
	}
	return s
}
