package benchmarks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvbench/kvbench/group"
	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
)

// merged merges the ranks' results into one and writes it next to them. The error says why there is no
// merged result, or why the merged result is incomplete.
func (c *clients) merged(t group.Trial) (o outcome) {
	c.mu.Lock()
	all := *c.trial // keep may still write the result of a lost rank
	all.paths = maps.Clone(all.paths)
	c.trial = nil
	c.mu.Unlock()
	// The results are in order of arrival.
	slices.SortFunc(all.results, func(a, b *result.Result) int { return a.Rank - b.Rank })
	errs := slices.Clone(all.failed)
	for _, l := range t.Lost {
		errs = append(errs, errors.New(l.String()))
	}
	for rank, text := range t.Text {
		// A rank's result contains the rank's error.
		has := slices.ContainsFunc(all.results,
			func(r *result.Result) bool { return r.Rank == rank })
		if text != "" && !has {
			errs = append(errs, fmt.Errorf("rank %d: %s", rank, text))
		}
	}
	if len(all.results) == 0 {
		o.err = errors.Join(append(errs, errors.New("no rank has a result"))...)
		return o
	}
	r := merge.Ranks(all.results, c.describe(&all, t))
	o.res = r
	all.addPauses(r, t.Silent)
	// The merged result must show that it lacks ranks.
	for _, e := range errs {
		if !strings.Contains(r.Error, e.Error()) { // otherwise an error of a rank quotes it
			r.Error = strings.TrimPrefix(r.Error+"; "+e.Error(), "; ")
		}
	}
	if len(errs) > 0 && r.Status == result.StatusComplete {
		r.Status = result.StatusIncomplete
	}
	// A larger skew makes the sum of rates wrong by more than 1 %. The clocks are known to within Uncertainty.
	if t.Skew != nil && *t.Skew > max(r.WindowNS/100, 2**t.Uncertainty) {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the ranks' windows %s, %.3g %% of their "+
			"length: rates of ranks that did not measure concurrently do not add up",
			r.Clients.Opened(), 100*float64(*t.Skew)/float64(r.WindowNS)))
	}
	c.s.unsaved.Store(r)
	o.path, o.err = onResults(c, func() (string, error) { return all.save("all_ranks", r) })
	if o.err != nil {
		c.s.unwritten[r] = o.err
	}
	c.s.unsaved.Store(nil)
	c.saved = c.saved || o.err == nil
	if o.err == nil && r.Status != result.StatusComplete {
		o.err = errors.New(r.Error)
	}
	return o
}

// addPauses adds to the merged result what no rank's result has: pauses of the coordinator after its own result,
// and times in which a rank was silent without a pause of its own.
func (all *collection) addPauses(r *result.Result, silent []result.Pause) {
	for _, p := range append(all.pauses(), silent...) {
		same := func(o result.Pause) bool { return o.Rank == p.Rank && o.Touches(p) }
		if r.Simulation == nil && !slices.ContainsFunc(r.Pauses, same) { // a simulation takes no real time
			merge.AddPause(r, all.results, p)
			r.Warnings = append(r.Warnings, r.Pauses[len(r.Pauses)-1].Why())
		}
	}
}

// summarize writes the run's summary next to its results, as kvreport aggregate does, and prints it. It
// does nothing on a rank that does not coordinate, or without a merged result.
func (c *clients) summarize(w io.Writer) error {
	if c == nil || c.leader == nil || !c.saved {
		return nil
	}
	dir := c.s.points[0].ResultsDir
	path := filepath.Join(dir, merge.SummaryFile)
	s, err := onResults(c, func() (*merge.Summary, error) {
		t, err := merge.ReadTree(dir)
		if err != nil {
			return nil, err
		}
		s := merge.Aggregate(t)
		var text bytes.Buffer
		if err = s.WriteJSON(&text); err == nil {
			err = os.WriteFile(path, text.Bytes(), 0o644)
		}
		return s, err
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	return s.WriteText(w, path)
}

// describe returns the section about the ranks: hosts, filesystems, lost ranks, start skew, and key
// values of each rank.
func (c *clients) describe(all *collection, t group.Trial) *result.Clients {
	d := &result.Clients{Launcher: c.Launcher, Transport: "tcp", StartSkewNS: t.Skew,
		StartSkewUncertaintyNS: t.Uncertainty, Hosts: []result.Host{},
		Filesystems: []result.SharedFilesystem{}, Lost: append([]result.LostClient{}, t.Lost...),
		PerRank: []result.ClientRank{}}
	// Lost ranks count as ranks of their hosts.
	var hosts []group.Hello // the Hello of each host's first rank
	for _, h := range c.leader.Members() {
		i := slices.IndexFunc(hosts, func(o group.Hello) bool { return o.OneHost(&h) })
		if i < 0 { // OneHost distinguishes cloned machines, which have the same name
			i = len(hosts)
			hosts, d.Hosts = append(hosts, h), append(d.Hosts, result.Host{Name: h.Host})
		}
		d.Hosts[i].Ranks = append(d.Hosts[i].Ranks, h.Rank)
	}
	inMemory := func(r *result.Result) bool { return r.IO.Mode == result.IOMemory }
	for _, dirs := range c.leader.Filesystems() {
		if slices.ContainsFunc(all.results, inMemory) { // this benchmark uses no directory
			break
		}
		d.Filesystems = append(d.Filesystems, usage(dirs, all.results))
	}
	for _, r := range all.results {
		read, write := r.StorageTraffic()
		entry := r.Latency.Levels["storage"]
		path, _ := filepath.Rel(c.s.points[0].ResultsDir, all.paths[r.Rank])
		d.PerRank = append(d.PerRank, result.ClientRank{Rank: r.Rank,
			Host: r.Environment.Hostname, Path: filepath.ToSlash(path),
			ReadBytesPerSecond: read.BytesPerSecond, WriteBytesPerSecond: write.BytesPerSecond,
			ReadP95NS: entry.Read.Device.P95, WriteP95NS: entry.Write.Device.P95,
			Verdict: r.Harness.Verdict.Kind})
	}
	return d
}

// usage returns a shared filesystem: the ranks that use it, and from their results its type, their
// directories and the capacity that they use together.
func usage(dirs []group.Directory, results []*result.Result) (f result.SharedFilesystem) {
	for _, d := range dirs {
		if !slices.Contains(f.Ranks, d.Rank) {
			f.Ranks = append(f.Ranks, d.Rank)
		}
		i := slices.IndexFunc(results, func(r *result.Result) bool { return r.Rank == d.Rank })
		if i < 0 {
			continue
		}
		r := results[i]
		f.Type = r.Environment.Filesystem.Type
		if d.Dir < len(r.IO.Roots) {
			root := r.IO.Roots[d.Dir]
			f.Type = root.Mount.Type
			if !slices.Contains(f.Directories, root.Directory) {
				f.Directories = append(f.Directories, root.Directory)
			}
		}
		if r.Checkpoint != nil { // all ranks share one checkpoint
			f.CapacityBytes = r.StorageCapacity()
		} else { // of several directories each has an equal part
			f.CapacityBytes += r.StorageCapacity() / int64(max(1, len(r.IO.Roots)))
		}
	}
	return f
}
