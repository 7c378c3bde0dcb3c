package group

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Port is rank 0's where no other is given.
const Port = "7717"

// LocalAddress is where the ranks of a job meet that are all on this host: a port of the loopback
// interface, derived from the job's name. It lies below the ports that systems give to outgoing
// connections (from 32768 on with Linux, 49152 by IANA).
func LocalAddress(job string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(job))
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(10_000+h.Sum32()%20_000)))
}

// Value is the text of a variable. The zero Value is not set.
type Value struct{ Text, Variable string }

// Given reports whether the variable is set.
func (v Value) Given() bool { return v.Text != "" }

// Launched is what a launcher (mpirun, srun, torchrun …) has set in the environment of a process.
// Numbers are texts, not yet checked: the user may give each of them.
type Launched struct {
	Launcher string
	Rank     Value
	// Size is not given by every launcher, and SizeVariable is where it was looked for, empty where
	// there is no such variable.
	Size         Value
	SizeVariable string
	// Local is how many ranks are on this host. Not given is unknown, which is not "all of them".
	Local Value
	// First is the host of rank 0, and Job the name of the job, the same for all of its ranks and
	// for no other job at the same time. "" is unknown.
	First, Job string
	// Problem is why Rank or Local cannot be used, "" if they can.
	Problem string
}

// launcher is a launcher's variables. Rank, size and local size are taken from one launcher: inside
// an allocation Slurm's variables stay set under mpirun, where they describe something else.
type launcher struct {
	name string
	// needs are the variables that all must be set for it to apply.
	needs []string
	rank  string
	size  string   // "" where the launcher does not set it
	local []string // the first that is set counts
	// here makes the local size where no variable holds it; nil is unknown. The error is about it.
	here func(env variables) (Value, error)
	// first is the host of rank 0, and job the name of the job; nil is unknown.
	first, job func(env variables) string
}

// variables returns the value of an environment variable, "" where it is not set.
type variables = func(name string) string

func variable(name string) func(variables) string {
	return func(env variables) string { return env(name) }
}

// alone is of a launcher that starts one rank on a host.
func alone(variable string) func(variables) (Value, error) {
	return func(variables) (Value, error) { return Value{"1", variable}, nil }
}

// launchers in the order in which they are tried. What is generic comes late: RANK is set by other
// programs, too, and Slurm's variables below mpirun. The names were checked in programs that ran
// under Open MPI 4.1.4, MPICH 4.0.2 and Slurm 22.05; those of the others are from their
// documentation.
var launchers = []launcher{
	{name: "Open MPI", needs: []string{"OMPI_COMM_WORLD_RANK"}, rank: "OMPI_COMM_WORLD_RANK",
		size: "OMPI_COMM_WORLD_SIZE", local: []string{"OMPI_COMM_WORLD_LOCAL_SIZE"},
		job: variable("PMIX_NAMESPACE")},
	{name: "MVAPICH2", needs: []string{"MV2_COMM_WORLD_RANK"}, rank: "MV2_COMM_WORLD_RANK",
		size: "MV2_COMM_WORLD_SIZE", local: []string{"MV2_COMM_WORLD_LOCAL_SIZE"}},
	// Its total size stands in PMI_SIZE where PMI is used, else nowhere.
	{name: "PALS", needs: []string{"PALS_RANKID"}, rank: "PALS_RANKID", size: "PMI_SIZE",
		local: []string{"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"}, job: variable("PALS_APID")},
	{name: "PMI", needs: []string{"PMI_RANK"}, rank: "PMI_RANK", size: "PMI_SIZE",
		local: []string{"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"}, first: pmiFirst,
		job: variable("PMI_JOBID")},
	// In a batch script SLURM_PROCID is 0 and SLURM_NTASKS is set, and no step is: one process,
	// which is not rank 0 of many.
	{name: "Slurm", needs: []string{"SLURM_STEP_NUM_TASKS"}, rank: "SLURM_PROCID",
		size: "SLURM_STEP_NUM_TASKS", here: slurmLocal, first: slurmFirst, job: slurmJob},
	{name: "Flux", needs: []string{"FLUX_TASK_RANK"}, rank: "FLUX_TASK_RANK",
		size: "FLUX_JOB_SIZE", here: fluxLocal, job: variable("FLUX_JOB_ID")},
	// Kubeflow sets no local size: a pod has one rank.
	{name: "torchrun", needs: []string{"RANK", "WORLD_SIZE", "MASTER_ADDR"}, rank: "RANK",
		size: "WORLD_SIZE", local: []string{"LOCAL_WORLD_SIZE"}, here: alone("WORLD_SIZE"),
		first: variable("MASTER_ADDR"), job: torchJob},
	{name: "Kubernetes", needs: []string{"JOB_COMPLETION_INDEX"}, rank: "JOB_COMPLETION_INDEX",
		here: alone("JOB_COMPLETION_INDEX"), first: podFirst, job: podJob},
}

// FindLauncher reads the variables of the launcher that has started this process, nil without one. An
// empty variable counts as not set.
func FindLauncher(env func(string) string) *Launched {
	for i := range launchers {
		l := &launchers[i]
		set := true
		for _, name := range l.needs {
			set = set && env(name) != ""
		}
		if set {
			return l.read(env)
		}
	}
	return nil
}

func (l *launcher) read(env variables) *Launched {
	value := func(name string) Value {
		if text := env(name); text != "" {
			return Value{text, name}
		}
		return Value{}
	}
	p := &Launched{Launcher: l.name, Rank: value(l.rank), Size: value(l.size), SizeVariable: l.size}
	for _, name := range l.local {
		p.Local = cmp.Or(p.Local, value(name))
	}
	var err error
	if l.here != nil && !p.Local.Given() {
		p.Local, err = l.here(env)
	}
	switch {
	case !p.Rank.Given():
		p.Problem = fmt.Sprintf("%s: must be set when %s is: give -rank, or start under %s",
			l.rank, l.needs[0], l.name)
	case err != nil:
		p.Problem = err.Error()
	}
	if l.first != nil {
		p.First = l.first(env)
	}
	if l.job != nil {
		if id := l.job(env); id != "" {
			p.Job = l.name + " " + id
		}
	}
	return p
}

// pmiFirst: srun --mpi=pmi2 sets the variables of PMI and those of its step. They are of one job
// when they agree; below mpirun a step of another size may surround the ranks.
func pmiFirst(env variables) string {
	if env("SLURM_STEP_NUM_TASKS") == env("PMI_SIZE") && env("SLURM_PROCID") == env("PMI_RANK") {
		return slurmFirst(env)
	}
	return ""
}

// fluxLocal: Flux sets on how many nodes a job runs, and spreads it evenly where that is possible.
func fluxLocal(env variables) (Value, error) {
	size, err1 := strconv.Atoi(env("FLUX_JOB_SIZE"))
	nodes, err2 := strconv.Atoi(env("FLUX_JOB_NNODES"))
	if err1 != nil || err2 != nil || nodes < 1 || size%nodes != 0 {
		return Value{}, nil
	}
	return Value{strconv.Itoa(size / nodes), "FLUX_JOB_NNODES"}, nil
}

// torchJob: without torchrun's own id the port of its store, which it listens at itself,
// distinguishes the jobs of one host.
func torchJob(env variables) string {
	return cmp.Or(env("TORCHELASTIC_RUN_ID"), env("MASTER_PORT"))
}

// thisPod returns the kernel's host name, which in a pod is the pod's, and the text of /etc/hosts.
var thisPod = func() (name, hosts string) {
	name, _ = os.Hostname()
	text, _ := os.ReadFile("/etc/hosts")
	return name, string(text)
}

// podJob cuts the index off the name of a pod of an Indexed Job, which is <job>-<index>.
func podJob(env variables) string {
	name, _ := thisPod()
	name, _, _ = strings.Cut(name, ".")
	job, ok := strings.CutSuffix(name, "-"+env("JOB_COMPLETION_INDEX"))
	if !ok {
		return ""
	}
	return job
}

var domain = regexp.MustCompile(`^[A-Za-z0-9.-]+$`)

// podFirst is the pod's own name in its domain, with the index 0. The domain of a headless service
// stands nowhere but in /etc/hosts.
func podFirst(env variables) string {
	job := podJob(env)
	if job == "" {
		return ""
	}
	own := job + "-" + env("JOB_COMPLETION_INDEX") + "."
	_, hosts := thisPod()
	for line := range strings.Lines(hosts) {
		line, _, _ := strings.Cut(line, "#")
		for _, name := range strings.Fields(line) {
			if rest, ok := strings.CutPrefix(name, own); ok && domain.MatchString(rest) {
				return job + "-0." + rest
			}
		}
	}
	return ""
}

func slurmJob(env variables) string {
	job, step := env("SLURM_JOB_ID"), env("SLURM_STEP_ID")
	if job == "" || step == "" {
		return ""
	}
	return job + "." + step
}

// slurmFirst is the first host of the step: of a list such as n[01-04,7]-ib,m2 it is n01-ib, "" of
// what is no list. SLURM_LAUNCH_NODE_IPADDR is not it: that is where srun was typed.
func slurmFirst(env variables) string {
	list := env("SLURM_STEP_NODELIST")
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
func slurmLocal(env variables) (Value, error) {
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
