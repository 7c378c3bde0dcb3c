package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvbench/kvbench/group/coordinate"
	"kvbench/kvbench/group/wire"
	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
)

// merged merges the ranks' results into one and writes it next to them. The error says why there is no
// merged result, or why it is not a complete one of all ranks.
func (c *Clients) merged(t coordinate.Trial) (*result.Result, string, error) {
	c.saving.Lock()
	defer c.saving.Unlock()
	c.mu.Lock()
	all := c.trial
	c.trial = nil
	c.mu.Unlock()
	errs := slices.Clone(all.failed)
	for _, l := range t.Lost {
		errs = append(errs, errors.New(l.String()))
	}
	for rank, text := range t.Text {
		// The result of a rank contains the rank's error.
		has := slices.ContainsFunc(all.results,
			func(r *result.Result) bool { return r.Rank == rank })
		// A rank that waited for this one quotes this one's error. It is listed only there.
		said := slices.ContainsFunc(t.Text,
			func(o string) bool { return o != text && strings.Contains(o, text) })
		if text != "" && !has && !said {
			errs = append(errs, fmt.Errorf("rank %d: %s", rank, text))
		}
	}
	if len(all.results) == 0 {
		return nil, "", errors.Join(append(errs, errors.New("no rank has a result"))...)
	}
	res, err := merge.Ranks(all.results, c.describe(all, t))
	if err != nil {
		return nil, "", errors.Join(append(errs, err)...)
	}
	// A reader of the merged result alone must not take it for one of all ranks.
	for _, e := range errs {
		if strings.Contains(res.Error, e.Error()) {
			continue // the other ranks have ended because of it
		}
		res.Error = strings.TrimPrefix(res.Error+"; "+e.Error(), "; ")
	}
	if len(errs) > 0 && res.Status == result.StatusComplete {
		res.Status = result.StatusIncomplete
	}
	if t.Skew != nil && coordinate.TooFarApart(*t.Skew, *t.Uncertainty, res.WindowNS) {
		res.Warnings = append(res.Warnings, fmt.Sprintf("the ranks' windows %s, %.2g %% of their "+
			"length: rates of ranks that did not measure concurrently do not add up",
			res.Clients.Opened(), 100*float64(*t.Skew)/float64(res.WindowNS)))
	}
	c.saved = true
	path, err := all.Save("all_ranks", res)
	if err != nil {
		return res, path, err
	}
	if res.Status != result.StatusComplete {
		return res, path, errors.New(res.Error)
	}
	return res, path, nil
}

// Summarize writes the run's summary next to its results, as kvreport aggregate does, and prints
// it. It does nothing unless this process coordinates and there is a result.
func (c *Clients) Summarize(w io.Writer) error {
	if c == nil || c.leader == nil || !c.saved {
		return nil
	}
	t, err := merge.ReadTree(c.ResultsDir)
	if err != nil {
		return err
	}
	s := merge.Aggregate(t)
	var text bytes.Buffer
	if err := s.WriteJSON(&text); err != nil {
		return err
	}
	path := filepath.Join(c.ResultsDir, merge.SummaryFile)
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return s.WriteText(w, path)
}

// describe is the ranks, and how they began.
func (c *Clients) describe(all *trial, t coordinate.Trial) *result.Clients {
	d := &result.Clients{Launcher: c.Launcher, Transport: "tcp", StartSkewNS: t.Skew,
		StartSkewUncertaintyNS: t.Uncertainty, Hosts: []result.Host{},
		Filesystems: []result.SharedFilesystem{}, Lost: []result.LostClient{},
		PerRank: []result.ClientRank{}}
	// The hosts are also those of lost ranks.
	var hosts []wire.Hello // the first rank of each
	for _, h := range c.leader.Members() {
		i := slices.IndexFunc(hosts, func(o wire.Hello) bool { return o.OneHost(&h) })
		if i < 0 { // cloned machines have the same name, but each is a host of its own
			i = len(hosts)
			hosts, d.Hosts = append(hosts, h), append(d.Hosts, result.Host{Name: h.Host})
		}
		d.Hosts[i].Ranks = append(d.Hosts[i].Ranks, h.Rank)
	}
	// Each filesystem, and what the ranks use of it together. This is known only of ranks with a result.
	for _, on := range c.filesystems() {
		f := result.SharedFilesystem{Ranks: on.ranks}
		for _, r := range all.results {
			for _, dir := range on.dirs[r.Rank] {
				f.Type = r.Environment.Filesystem.Type
				n := max(1, len(r.IO.Roots)) // each has an equal part of the capacity
				if dir < len(r.IO.Roots) {
					root := r.IO.Roots[dir]
					if f.Type = root.Mount.Type; !slices.Contains(f.Directories, root.Directory) {
						f.Directories = append(f.Directories, root.Directory)
					}
				}
				if r.Checkpoint != nil { // all write one
					f.CapacityBytes = r.StorageCapacity()
				} else {
					f.CapacityBytes += r.StorageCapacity() / int64(n)
				}
			}
		}
		d.Filesystems = append(d.Filesystems, f)
	}
	for _, l := range t.Lost {
		d.Lost = append(d.Lost, result.LostClient{Rank: l.Hello.Rank, Host: l.Hello.Host,
			PID: l.Hello.PID, Why: l.Why, Stage: l.Stage, AfterNS: int64(l.After)})
	}
	// They came in any order.
	slices.SortFunc(all.results, func(a, b *result.Result) int { return a.Rank - b.Rank })
	for _, r := range all.results {
		read, write := r.StorageTraffic()
		if c := r.Checkpoint; c != nil { // whose rate is that of the rules, without the pauses
			in, out := c.Rates()
			read.BytesPerSecond, write.BytesPerSecond = &in, &out
		}
		entry := r.Latency.Levels["storage"]
		path, _ := filepath.Rel(c.ResultsDir, all.paths[r.Rank])
		d.PerRank = append(d.PerRank, result.ClientRank{Rank: r.Rank,
			Host: r.Environment.Hostname, Path: filepath.ToSlash(path),
			ReadBytesPerSecond: read.BytesPerSecond, WriteBytesPerSecond: write.BytesPerSecond,
			ReadP95NS: entry.Read.Device.P95, WriteP95NS: entry.Write.Device.P95,
			Verdict: r.Harness.Verdict.Kind})
	}
	return d
}
