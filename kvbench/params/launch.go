package params

import (
	"fmt"
	"strconv"
	"strings"
)

// launcher is a family of variables that a launcher sets in every process. Size and local size are
// taken from the same family as the rank: inside an allocation Slurm's variables stay set under
// mpirun, where they describe something else.
type launcher struct {
	name              string
	rank, size, local string
	// nil: local holds the number itself
	localSize func(text string, env lookup) (string, error)
}

type lookup func(string) (string, bool)

// launchers in the order in which they are asked.
var launchers = []launcher{
	{name: "Open MPI", rank: "OMPI_COMM_WORLD_RANK", size: "OMPI_COMM_WORLD_SIZE",
		local: "OMPI_COMM_WORLD_LOCAL_SIZE"},
	{name: "PMI", rank: "PMI_RANK", size: "PMI_SIZE", local: "MPI_LOCALNRANKS"},
	{name: "Slurm", rank: "SLURM_PROCID", size: "SLURM_NTASKS", local: "SLURM_TASKS_PER_NODE",
		localSize: slurmLocal},
}

// membership is this process among its fellows.
type membership struct {
	rank, ranks, local             int
	rankFrom, ranksFrom, localFrom Origin
	found                          bool
}

// findPlace asks the launchers' variables. Without any the process is rank 0 of 1.
func findPlace(env lookup) (membership, Violations) {
	p := membership{ranks: 1, local: 1}
	for _, l := range launchers {
		text, ok := env(l.rank)
		if !ok || text == "" {
			continue
		}
		return l.read(text, env)
	}
	return p, nil
}

func (l launcher) read(rank string, env lookup) (membership, Violations) {
	var bad Violations
	number := func(name, text, required string, least int) int {
		n, err := strconv.Atoi(text)
		if err != nil || n < least {
			bad = append(bad, Violation{Name: name, Required: required, Given: text,
				Origin: Origin{FromLauncher, name}})
			return least
		}
		return n
	}
	at := func(name string) Origin { return Origin{FromLauncher, name} }
	p := membership{found: true, rankFrom: at(l.rank), ranksFrom: at(l.size),
		localFrom: at(l.local)}
	p.rank = number(l.rank, rank,
		"a whole number of at least 0 ("+l.name+" sets it; -rank overrides it)", 0)
	// A rank without a number of ranks is a broken environment: four clients that each think to be
	// alone would each take all of the free space.
	size, ok := env(l.size)
	if !ok || size == "" {
		bad = append(bad, Violation{Name: l.size, Text: fmt.Sprintf("%s: must be set when %s is: "+
			"give -rank and -ranks, or start under %s", l.size, l.rank, l.name)})
		return membership{ranks: 1, local: 1}, bad
	}
	p.ranks = number(l.size, size, "a whole number of at least 1", 1)
	if len(bad) == 0 && p.rank >= p.ranks {
		bad = append(bad, Violation{Name: l.rank, Required: "below " + l.size + " (" + size + ")",
			Given: rank, Origin: p.rankFrom})
	}
	// Without a number for this host all clients count as being here.
	p.local = p.ranks
	if text, ok := env(l.local); ok && text != "" {
		if l.localSize != nil {
			one, err := l.localSize(text, env)
			if err != nil {
				return p, append(bad, Violation{Name: l.local, Required: err.Error(), Given: text,
					Origin: p.localFrom})
			}
			text = one
		}
		p.local = min(number(l.local, text, "a whole number of at least 1", 1), p.ranks)
	} else {
		p.localFrom = p.ranksFrom
	}
	return p, bad
}

// slurmLocal picks this node's number out of "2(x3),1": tasks per node, run-length encoded in the
// order of the nodes.
func slurmLocal(text string, env lookup) (string, error) {
	// Without SLURM_NODEID the first node is taken: there is but one, or all have as many.
	node := 0
	if id, ok := env("SLURM_NODEID"); ok && id != "" {
		n, err := strconv.Atoi(id)
		if err != nil || n < 0 {
			return "", fmt.Errorf("read together with a whole SLURM_NODEID (it is %q)", id)
		}
		node = n
	}
	for part := range strings.SplitSeq(text, ",") {
		tasks, times := part, 1
		if head, tail, ok := strings.Cut(part, "(x"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(tail, ")"))
			if err != nil || n < 1 {
				break
			}
			tasks, times = head, n
		}
		if node < times {
			return tasks, nil
		}
		node -= times
	}
	return "", fmt.Errorf("a list such as 2(x3),1 that covers this node")
}

// place decides rank, ranks and local-ranks: as given, else as the launcher says. A person may give
// only some of the three; the launcher's numbers fill the others.
func (r *resolver) place() {
	v := r.v
	auto := v.Rank == automatic || v.Ranks == automatic || v.LocalRanks == automatic
	var found membership
	if auto {
		var bad Violations
		if found, bad = findPlace(r.in.Env); v.Rank == automatic {
			r.bad = append(r.bad, bad...) // with -rank given the variables are not needed
		}
	}
	fill := func(name string, field *int, value int, from Origin) {
		if *field != automatic {
			return
		}
		origin := v.Origin(name)
		if found.found {
			origin = from
		}
		*field = value
		v.origins[name] = origin
	}
	ranksGiven := v.Ranks != automatic
	fill("rank", &v.Rank, found.rank, found.rankFrom)
	fill("ranks", &v.Ranks, found.ranks, found.ranksFrom)
	local := found.local
	if ranksGiven && !found.found {
		// Unknown: all here is the careful guess, it divides the free space by the most.
		local = v.Ranks
	}
	fill("local-ranks", &v.LocalRanks, min(local, v.Ranks), found.localFrom)
	// Numbers of a launcher have been checked against each other under their own names.
	if v.Rank >= v.Ranks && !r.refused["rank"] && !r.refused["ranks"] &&
		(v.Origin("rank").byUser() || v.Origin("ranks").byUser()) {
		r.refuse("rank", fmt.Sprintf("below -ranks (%d)", v.Ranks))
	}
	if v.LocalRanks > v.Ranks {
		r.refuse("local-ranks", fmt.Sprintf("at most -ranks (%d)", v.Ranks))
	}
}
