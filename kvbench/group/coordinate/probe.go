package coordinate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"kvbench/kvbench/group/wire"
)

// Prober finds out whether ranks see each other's files. What it makes is small, has a name of its
// own and does not stay. Its methods are called one after the other, on any goroutine.
type Prober interface {
	// Make makes a mark in each of those directories in which this rank is going to work, counted
	// from 0, and returns what stands in it, which nobody can guess.
	Make(dirs []int) ([]wire.Mark, error)
	// Look returns what stands in the marks of those of the ranks whose marks it sees where it has
	// made its own.
	Look(ranks []int) ([]wire.Mark, error)
	// Remove removes the marks, if they are there.
	Remove()
}

// place is a directory of a rank.
type place struct{ rank, dir int }

// Begin finds out which ranks share filesystems, and tells all that the run begins: it follows
// Gather. Directories on filesystems of one kernel are told apart by what that kernel says; of the
// others one of each filesystem gets a mark, all who have made one look for the marks of the
// others, and each removes its own. Where the mark of another rank is seen is its filesystem, too.
func (l *Leader) Begin(ctx context.Context) error {
	l.mu.Lock()
	all := slices.Clone(l.clients)
	l.mu.Unlock()
	// What is on which filesystem: a list of places of each, those of whom nobody knows among none.
	// Of ranks on one host, or on one device, nothing has to be asked.
	groups := sites(all)
	makers := map[int][]int{} // directories, by rank
	for _, g := range groups {
		makers[g[0].rank] = append(makers[g[0].rank], g[0].dir)
	}
	if len(makers) > 1 {
		seen, err := l.probe(ctx, all, makers)
		if err != nil {
			return err
		}
		groups = join(groups, seen)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range all {
		c.sharing = make([]wire.Sharing, len(c.hello.Devices))
	}
	for i, places := range groups {
		for _, p := range places {
			all[p.rank].sharing[p.dir] = wire.Sharing{Filesystem: i + 1, Filesystems: len(groups),
				Directories: len(places)}
		}
	}
	for _, c := range all {
		for _, other := range all {
			if c.hello.OneHost(&other.hello) {
				c.local++
			}
		}
		if c.there() {
			c.link.send(&wire.Message{Kind: wire.Gathered, Sharing: c.sharing, Local: c.local})
		}
	}
	return nil
}

// sites are the places of each filesystem as far as their kernels tell, the lowest first. A kernel
// has one number for a filesystem, in all of its containers; another one has others.
func sites(all []*client) (groups [][]place) {
	type site struct{ boot, device string }
	at := map[site]int{}
	for rank, c := range all {
		for dir, device := range c.hello.Devices {
			s := site{c.hello.Boot, device}
			if s.device == "" { // it is on no filesystem that anybody knows
				continue
			}
			i, known := at[s]
			if !known || s.boot == "" {
				i, at[s] = len(groups), len(groups)
				groups = append(groups, nil)
			}
			groups[i] = append(groups[i], place{rank, dir})
		}
	}
	return groups
}

// join makes one of groups of which a place of one has seen the mark of a place of the other.
func join(groups [][]place, seen [][2]place) [][]place {
	of := func(p place) int {
		return slices.IndexFunc(groups, func(g []place) bool { return slices.Contains(g, p) })
	}
	for _, pair := range seen {
		a, b := of(pair[0]), of(pair[1])
		// Whoever sees whom, the other may look through a cache that is older than the mark.
		if a < 0 || b < 0 || a == b {
			continue
		}
		groups[a] = append(groups[a], groups[b]...)
		slices.SortFunc(groups[a], place.compare)
		groups = slices.Delete(groups, b, b+1)
	}
	slices.SortFunc(groups, func(a, b []place) int { return a[0].compare(b[0]) })
	return groups
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.rank, o.rank), cmp.Compare(p.dir, o.dir))
}

// probe lets ranks make marks in directories of theirs and look for those of the others: where
// whose was seen.
func (l *Leader) probe(ctx context.Context, all []*client, makers map[int][]int) (seen [][2]place,
	err error) {
	ranks := slices.Sorted(maps.Keys(makers))
	defer func() {
		// Also where something went wrong: nothing is to stay.
		_, stays := l.ask(ctx, all, ranks, "remove", func(int) []wire.Mark { return nil })
		if err == nil {
			err = stays
		}
	}()
	answers, err := l.ask(ctx, all, ranks, "make", func(rank int) (marks []wire.Mark) {
		for _, dir := range makers[rank] {
			marks = append(marks, wire.Mark{Rank: rank, Dir: dir})
		}
		return marks
	})
	if err != nil {
		return nil, err
	}
	made := map[wire.Mark]place{} // by rank and content
	for rank, marks := range answers {
		for _, m := range marks {
			if slices.Contains(makers[rank], m.Dir) && m.Content != "" {
				made[wire.Mark{Rank: rank, Content: m.Content}] = place{rank, m.Dir}
			}
		}
	}
	// All marks are there by now: who does not see one will never do.
	var of []wire.Mark
	for _, rank := range ranks {
		of = append(of, wire.Mark{Rank: rank})
	}
	answers, err = l.ask(ctx, all, ranks, "look", func(int) []wire.Mark { return of })
	if err != nil {
		return nil, err
	}
	for rank, marks := range answers {
		for _, m := range marks {
			p, is := made[wire.Mark{Rank: m.Rank, Content: m.Content}]
			if is && m.Rank != rank && slices.Contains(makers[rank], m.Dir) {
				seen = append(seen, [2]place{{rank, m.Dir}, p})
			}
		}
	}
	// Answers came in any order, and the same run is to say the same. There are at most as many as
	// pairs of filesystems.
	slices.SortFunc(seen, func(a, b [2]place) int {
		return cmp.Or(a[0].compare(b[0]), a[1].compare(b[1]))
	})
	return seen, nil
}

// ask lets ranks do a step of the probe side by side, with the marks that it is about, and waits
// for all of them.
func (l *Leader) ask(ctx context.Context, all []*client, ranks []int, step string,
	about func(rank int) []wire.Mark) (map[int][]wire.Mark, error) {
	// The answers to the step before are of no use any more.
	l.mu.Lock()
	for _, rank := range ranks {
		all[rank].probed = nil
		if all[rank].there() {
			all[rank].link.send(&wire.Message{Kind: wire.Probe, Text: step, Marks: about(rank)})
		}
	}
	l.mu.Unlock()
	err := l.await(ctx, func() bool {
		return l.stopped != "" || !slices.ContainsFunc(ranks, func(rank int) bool {
			return all[rank].there() && all[rank].probed == nil
		})
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	answers := map[int][]wire.Mark{}
	for _, rank := range ranks {
		c := all[rank]
		// One that was lost meanwhile has no answer, and none is waited for: whether the run goes
		// on without it is decided where it was lost.
		switch m := c.probed; {
		case m == nil && err != nil:
			return nil, fmt.Errorf("%s did not answer which ranks share its filesystem (%s a mark "+
				"in the cache directory): %w", c.hello.Place(), step, err)
		case m == nil:
		case m.Text != "":
			return nil, fmt.Errorf("%s cannot find out which ranks share its filesystem: %s",
				c.hello.Place(), wire.Printable(m.Text))
		default:
			answers[rank] = m.Marks
		}
	}
	if l.stopped != "" {
		return nil, errors.New(l.stopped)
	}
	return answers, nil
}

// probe does a step of it for a rank, and answers: with the marks that it made or saw, or with what
// kept it from that. It is for a goroutine of its own; the next step comes after the answer.
func (m *Member) probe(asked *wire.Message) {
	answer := &wire.Message{Kind: wire.Probed}
	var err error
	switch {
	case m.Prober == nil:
		err = errors.New("it has no cache directory")
	case asked.Text == "make":
		var dirs []int
		for _, mark := range asked.Marks {
			if mark.Dir >= 0 && mark.Dir < len(m.hello.Devices) {
				dirs = append(dirs, mark.Dir)
			}
		}
		answer.Marks, err = m.Prober.Make(dirs)
	case asked.Text == "look":
		var ranks []int
		for _, mark := range asked.Marks {
			ranks = append(ranks, mark.Rank)
		}
		answer.Marks, err = m.Prober.Look(ranks)
	case asked.Text == "remove":
		m.Prober.Remove()
	}
	if err != nil {
		answer.Text = err.Error()
	}
	m.link.send(answer)
}
