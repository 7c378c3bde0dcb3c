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

// Port is the port at which rank 0 listens if the address names no other.
const Port = "7717"

// LocalAddress returns the address at which rank 0 listens if all ranks of the job are on this host: a port
// of the loopback interface, derived from the job's name. The port is below the ephemeral ports of outgoing
// connections (from 32768 on Linux, from 49152 by IANA).
func LocalAddress(job string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(job))
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(10_000+h.Sum32()%20_000)))
}

// Value is the text of an environment variable, and the variable's name. The zero Value is a variable that
// is not set.
type Value struct{ Text, Variable string }

// Given reports whether the variable is set.
func (v Value) Given() bool { return v.Text != "" }

// Launched is what a launcher (mpirun, srun, torchrun …) has set in the environment of this process. Numbers
// are texts and not checked yet, because a flag of the user may replace each of them.
type Launched struct {
	Launcher string
	Rank     Value
	// Size is the number of ranks. Not every launcher sets it. SizeVariable names the launcher's variable
	// for it, "" if the launcher has none.
	Size         Value
	SizeVariable string
	// Local is how many ranks are on this host. A Value that is not set is unknown; it does not mean that
	// all ranks are here.
	Local Value
	// First is the host of rank 0. Job is the name of the job: all ranks of the job have it, and no other
	// job at the same time. "" is unknown.
	First, Job string
	// Problem is why Rank or Local cannot be used, "" if they can.
	Problem string
}

// launcher lists the environment variables of a launcher. Rank, size and local size are read from one
// launcher. With mpirun inside a Slurm allocation, for example, Slurm's variables stay set but do not
// describe mpirun's ranks.
type launcher struct {
	name string
	// needs are the variables that a process of this launcher has. The launcher is chosen if all are set.
	needs []string
	rank  string
	size  string   // "" where the launcher does not set it
	local []string // variables of the local size; the first that is set counts
	// here computes the local size if no variable of local is set; with nil the local size is unknown. Its
	// error becomes Launched.Problem.
	here func(env variables) (Value, error)
	// first returns the host of rank 0, and job the name of the job; with nil they are unknown.
	first, job func(env variables) string
}

// variables returns the value of an environment variable, "" where it is not set.
type variables = func(name string) string

func variable(name string) func(variables) string {
	return func(env variables) string { return env(name) }
}

// alone returns local size 1, for a launcher that starts one rank on each host.
func alone(variable string) func(variables) (Value, error) {
	return func(variables) (Value, error) { return Value{"1", variable}, nil }
}

// launchers are in the order in which FindLauncher tries them. Launchers with ambiguous variables come late:
// other programs set RANK, too, and Slurm's variables are also set under mpirun. The names of the variables
// were checked in processes under Open MPI 4.1.4, MPICH 4.0.2 and Slurm 22.05. For the other launchers the
// names are from the documentation.
var launchers = []launcher{
	{name: "Open MPI", needs: []string{"OMPI_COMM_WORLD_RANK"}, rank: "OMPI_COMM_WORLD_RANK",
		size: "OMPI_COMM_WORLD_SIZE", local: []string{"OMPI_COMM_WORLD_LOCAL_SIZE"},
		job: variable("PMIX_NAMESPACE")},
	{name: "MVAPICH2", needs: []string{"MV2_COMM_WORLD_RANK"}, rank: "MV2_COMM_WORLD_RANK",
		size: "MV2_COMM_WORLD_SIZE", local: []string{"MV2_COMM_WORLD_LOCAL_SIZE"}},
	// PALS sets the number of ranks in PMI_SIZE if PMI is used, else in no variable.
	{name: "PALS", needs: []string{"PALS_RANKID"}, rank: "PALS_RANKID", size: "PMI_SIZE",
		local: []string{"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"}, job: variable("PALS_APID")},
	{name: "PMI", needs: []string{"PMI_RANK"}, rank: "PMI_RANK", size: "PMI_SIZE",
		local: []string{"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"}, first: pmiFirst,
		job: variable("PMI_JOBID")},
	// A batch script is one process and not rank 0 of several. There SLURM_PROCID is 0 and SLURM_NTASKS is
	// set, but the variables of a step are not.
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

// FindLauncher reads the variables of the launcher that has started this process. It returns nil if no
// launcher has. An empty variable counts as not set.
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

// pmiFirst returns the first host of the Slurm step if srun has started this rank: srun --mpi=pmi2 sets the
// variables of PMI and of the step, with equal ranks and sizes. MPICH's mpirun may run inside a step with
// another rank or size. The host of rank 0 is unknown then.
func pmiFirst(env variables) string {
	if env("SLURM_STEP_NUM_TASKS") == env("PMI_SIZE") && env("SLURM_PROCID") == env("PMI_RANK") {
		return slurmFirst(env)
	}
	return ""
}

// fluxLocal divides the size of a Flux job by its number of nodes, because Flux spreads ranks evenly over
// nodes. If the division leaves a remainder, the local size is unknown.
func fluxLocal(env variables) (Value, error) {
	size, err1 := strconv.Atoi(env("FLUX_JOB_SIZE"))
	nodes, err2 := strconv.Atoi(env("FLUX_JOB_NNODES"))
	if err1 != nil || err2 != nil || nodes < 1 || size%nodes != 0 {
		return Value{}, nil
	}
	return Value{strconv.Itoa(size / nodes), "FLUX_JOB_NNODES"}, nil
}

// torchJob returns torchrun's run id, or without one the port of torchrun's store. torchrun listens at that
// port, so two jobs on one host cannot have the same.
func torchJob(env variables) string {
	return cmp.Or(env("TORCHELASTIC_RUN_ID"), env("MASTER_PORT"))
}

// thisPod returns the host name, which in a pod is the name of the pod, and the text of /etc/hosts.
var thisPod = func() (name, hosts string) {
	name, _ = os.Hostname()
	text, _ := os.ReadFile("/etc/hosts")
	return name, string(text)
}

// podJob returns the name of an Indexed Job. The name of its pods is <job>-<index>.
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

// podFirst returns the host name of the pod with index 0, in the domain of the headless service. Only
// /etc/hosts has that domain, after the name of this pod.
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

// slurmFirst returns the first host of the step: n01-ib of the list n[01-04,7]-ib,m2. It returns "" if the
// list cannot be parsed. SLURM_LAUNCH_NODE_IPADDR is another host: the one on which srun was typed.
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
		name.WriteString(first) // leading zeros are part of the host's name
		list = after
	}
	return name.String()
}

// slurmLocal reads this node's number of tasks from the step's tasks per node.
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

// tasksOf returns a node's number of tasks from a list such as "2(x3),1": tasks per node, run-length encoded
// in the order of the nodes. id is the index of the node. If id is "", tasksOf takes the first node: there
// is one node, or all nodes have equally many tasks.
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
