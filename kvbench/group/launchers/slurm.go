package launchers

import (
	"fmt"
	"strconv"
	"strings"
)

func slurmJob(env func(string) string, _ Machine) string {
	job, step := env("SLURM_JOB_ID"), env("SLURM_STEP_ID")
	if job == "" || step == "" {
		return ""
	}
	return job + "." + step
}

// slurmFirst is the first host of the step. SLURM_LAUNCH_NODE_IPADDR is not it: that is where srun
// was typed.
func slurmFirst(env func(string) string, _ Machine) string {
	return firstNode(env("SLURM_STEP_NODELIST"))
}

// firstNode is the first host of a list such as n[01-04,7]-ib,m2: n01-ib. "" for what is no list.
func firstNode(list string) string {
	var name strings.Builder
	for list != "" {
		at := strings.IndexAny(list, "[,")
		if at < 0 {
			name.WriteString(list)
			break
		}
		name.WriteString(list[:at])
		if list[at] == ',' {
			break
		}
		inside, after, closed := strings.Cut(list[at+1:], "]")
		first := inside[:len(inside)-len(strings.TrimLeft(inside, "0123456789"))]
		if !closed || first == "" {
			return ""
		}
		name.WriteString(first) // with its leading zeros, which belong to the name
		list = after
	}
	return name.String()
}

// slurmLocal picks this node's number out of the step's tasks per node.
func slurmLocal(env func(string) string) (Value, error) {
	const variable = "SLURM_STEP_TASKS_PER_NODE"
	list := env(variable)
	if list == "" {
		return Value{}, nil
	}
	text, err := tasksOf(list, env("SLURM_NODEID"))
	if err != nil {
		return Value{}, fmt.Errorf("%s: must be %w, given %s (environment)", variable, err, list)
	}
	return Value{text, variable}, nil
}

// tasksOf picks a node's number out of "2(x3),1": tasks per node, run-length encoded in the order
// of the nodes. Without an id the first node is taken: there is but one, or all have as many.
func tasksOf(list, id string) (string, error) {
	node, err := strconv.Atoi(id)
	if id != "" && (err != nil || node < 0) {
		return "", fmt.Errorf("read together with a whole SLURM_NODEID (it is %q)", id)
	}
	for part := range strings.SplitSeq(list, ",") {
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
	return "", fmt.Errorf("a list such as 2(x3),1 that covers this node")
}
