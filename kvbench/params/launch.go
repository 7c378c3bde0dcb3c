package params

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// launcher is a family of variables that a launcher sets in every process. Size and local size are
// taken from the same family as the rank: inside an allocation Slurm's variables stay set under
// mpirun, where they describe something else.
type launcher struct{ name, rank, size, local string }

// launchers in the order in which they are asked.
var launchers = []launcher{
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
	{"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
	{"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE"},
}

// launched is what the launcher of this process says of it, by the names of the parameters: nothing
// without one, and no rank with a problem.
func launched(env func(string) string) (says map[string]setting, problem string) {
	for _, l := range launchers {
		get := func(variable string) setting {
			return setting{env(variable), Origin{FromLauncher, variable}}
		}
		rank, size, local := get(l.rank), get(l.size), get(l.local)
		says = map[string]setting{"rank": rank, "ranks": size}
		switch {
		case rank.text == "":
			continue
		// A rank without a number of ranks is a broken environment: four clients that each think to
		// be alone would each take all of the free space.
		case size.text == "":
			return nil, fmt.Sprintf("%s: must be set when %s is: give -rank and -ranks, or start "+
				"under %s", l.size, l.rank, l.name)
		case local.text == "":
			return says, ""
		case l.name == "Slurm":
			here, err := slurmLocal(local.text, env("SLURM_NODEID"))
			if err != nil {
				delete(says, "rank") // with -rank given the others still hold; see place
				return says, violation(l.local, local, err.Error())
			}
			local.text = here
		}
		says["local-ranks"] = local
		return says, ""
	}
	return nil, ""
}

// slurmLocal picks a node's number out of "2(x3),1": tasks per node, run-length encoded in the
// order of the nodes. Without an id the first node is taken: there is but one, or all have as many.
func slurmLocal(text, id string) (string, error) {
	node, err := strconv.Atoi(id)
	if id != "" && (err != nil || node < 0) {
		return "", fmt.Errorf("read together with a whole SLURM_NODEID (it is %q)", id)
	}
	for part := range strings.SplitSeq(text, ",") {
		times := 1
		tasks, tail, repeated := strings.Cut(part, "(x")
		if repeated {
			if times, err = strconv.Atoi(strings.TrimSuffix(tail, ")")); err != nil || times < 1 {
				break
			}
		}
		if node < times {
			return tasks, nil
		}
		node -= times
	}
	return "", errors.New("a list such as 2(x3),1 that covers this node")
}

// place decides rank, ranks and local-ranks where neither a person nor a launcher did. Somebody may
// give only some of the three; the launcher's numbers fill the others.
func (r *resolver) place(problem string) {
	v := r.v
	if v.Rank == automatic {
		v.Rank = 0
		if problem != "" { // with -rank given the variables are not needed
			r.bad = append(r.bad, problem)
		}
	}
	if v.Ranks == automatic {
		v.Ranks = 1
	}
	// Unknown: all here is the careful guess, it divides the free space by the most.
	if v.LocalRanks == automatic || v.LocalRanks > v.Ranks && !v.Origin("local-ranks").byUser() {
		v.LocalRanks = v.Ranks
		if from := v.Origin("ranks"); from.Kind == FromLauncher {
			v.row("local-ranks").given.origin = from
		}
	}
	r.want(v.Rank < v.Ranks || v.row("ranks").refused, "rank",
		fmt.Sprintf("below -ranks (%d)", v.Ranks))
	r.want(v.LocalRanks <= v.Ranks, "local-ranks", fmt.Sprintf("at most -ranks (%d)", v.Ranks))
}

// Alone says that this is the only client of its run and that no launcher started it, which would
// wait for it, or kill it, when it does not end soon.
func (v *Values) Alone() bool { return v.Ranks == 1 && !v.launched }
