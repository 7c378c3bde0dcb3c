package coordinate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"kvbench/kvbench/group/wire"
)

// Prober finds out whether ranks see each other's files. What it makes is small, has a name of its
// own and does not stay. Its methods are called one after the other, on any goroutine.
type Prober interface {
	// Make makes a mark where this rank is going to work, and returns what stands in it, which
	// nobody can guess.
	Make() (content string, err error)
	// Look returns what stands in the marks of those of the ranks whose marks it sees.
	Look(ranks []int) ([]wire.Mark, error)
	// Remove removes the mark, if it is there.
	Remove()
}

// Begin finds out which ranks share a filesystem, and tells all that the run begins: it follows
// Gather. Ranks on filesystems of one kernel are told apart by what that kernel says; of the others
// one of each filesystem makes a mark, all these look for the marks of the others, and each removes
// its own. A rank that sees the mark of another one shares its filesystem.
func (l *Leader) Begin(ctx context.Context) error {
	l.mu.Lock()
	all := slices.Clone(l.clients)
	l.mu.Unlock()
	// Who is on which filesystem: a list of ranks of each, those of whom nobody knows among none.
	// Of ranks on one host, or on one device, nothing has to be asked.
	groups, makers := sites(all)
	if len(makers) > 1 {
		seen, err := l.probe(ctx, all, makers)
		if err != nil {
			return err
		}
		groups = join(groups, seen)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, ranks := range groups {
		for _, rank := range ranks {
			all[rank].sharing = wire.Sharing{Filesystem: i + 1, Filesystems: len(groups),
				Ranks: len(ranks)}
		}
	}
	for _, c := range all {
		if c.there() {
			c.link.send(&wire.Message{Kind: wire.Gathered, Sharing: &c.sharing})
		}
	}
	return nil
}

// sites are the ranks of each filesystem as far as their kernels tell, and the lowest rank of each.
// A kernel has one number for a filesystem, in all of its containers; another one has others.
func sites(all []*client) (groups [][]int, makers []int) {
	type site struct{ boot, device string }
	at := map[site]int{}
	for rank, c := range all {
		s := site{c.hello.Boot, c.hello.Device}
		if s.device == "" { // it works on no filesystem
			continue
		}
		i, known := at[s]
		if !known || s.boot == "" {
			i, at[s] = len(groups), len(groups)
			groups, makers = append(groups, nil), append(makers, rank)
		}
		groups[i] = append(groups[i], rank)
	}
	return groups, makers
}

// join makes one of groups of which a rank of one has seen the mark of a rank of the other.
func join(groups [][]int, seen [][2]int) [][]int {
	of := func(rank int) int {
		return slices.IndexFunc(groups, func(g []int) bool { return slices.Contains(g, rank) })
	}
	for _, pair := range seen {
		a, b := of(pair[0]), of(pair[1])
		// Whoever sees whom, the other may look through a cache that is older than the mark.
		if a < 0 || b < 0 || a == b {
			continue
		}
		groups[a] = append(groups[a], groups[b]...)
		slices.Sort(groups[a])
		groups = slices.Delete(groups, b, b+1)
	}
	slices.SortFunc(groups, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	return groups
}

// probe lets ranks make marks and look for those of the others: who has seen whose.
func (l *Leader) probe(ctx context.Context, all []*client, makers []int) (seen [][2]int,
	err error) {
	made := map[int]string{}
	defer func() {
		// Also where something went wrong: nothing is to stay.
		if _, stays := l.ask(ctx, all, makers, "remove", nil); err == nil {
			err = stays
		}
	}()
	answers, err := l.ask(ctx, all, makers, "make", nil)
	if err != nil {
		return nil, err
	}
	for rank, marks := range answers {
		for _, m := range marks {
			made[rank] = m.Content
		}
	}
	// All marks are there by now: who does not see one will never do.
	if answers, err = l.ask(ctx, all, makers, "look", makers); err != nil {
		return nil, err
	}
	for rank, marks := range answers {
		for _, m := range marks {
			if m.Rank != rank && m.Content != "" && m.Content == made[m.Rank] {
				seen = append(seen, [2]int{rank, m.Rank})
			}
		}
	}
	// Answers came in any order, and the same run is to say the same. There are at most as many as
	// pairs of filesystems.
	slices.SortFunc(seen, func(a, b [2]int) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	return seen, nil
}

// ask lets ranks do a step of the probe side by side, and waits for all of them.
func (l *Leader) ask(ctx context.Context, all []*client, ranks []int, step string, of []int) (
	map[int][]wire.Mark, error) {
	var marks []wire.Mark
	for _, rank := range of {
		marks = append(marks, wire.Mark{Rank: rank})
	}
	// The answers to the step before are of no use any more.
	l.mu.Lock()
	for _, rank := range ranks {
		all[rank].probed = nil
		if all[rank].there() {
			all[rank].link.send(&wire.Message{Kind: wire.Probe, Text: step, Marks: marks})
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
		var content string
		content, err = m.Prober.Make()
		answer.Marks = []wire.Mark{{Rank: m.hello.Rank, Content: content}}
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
