package group

import (
	"cmp"
	"hash/fnv"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Port is the port at which rank 0 listens if the address has no port.
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

// Launched has what a launcher (mpirun, srun, torchrun …) has set in the environment of this process. Numbers
// are texts that nothing has checked yet, because a flag of the user may replace each of them.
type Launched struct {
	Launcher string
	Rank     Value
	Size     Value // the number of ranks; some launchers do not set it
	// Local is how many ranks are on this host. A Value that is not set is unknown; it does not mean that
	// all ranks are here.
	Local Value
	// First is the host of rank 0. Job is the name of the job: all ranks of the job have the same name, and
	// no other job has it at the same time. "" means unknown.
	First, Job string
}

// variables returns the value of an environment variable, "" where it is not set.
type variables = func(name string) string

// launcher lists the environment variables of a launcher. Lists of variables are separated by spaces. All
// values are read from one launcher. With mpirun inside a Slurm allocation, for example, Slurm's variables
// stay set but do not describe mpirun's ranks.
type launcher struct {
	name string
	// needs are the variables that a process of this launcher has. The first variable is the rank. The
	// launcher is chosen if all variables are set.
	needs string
	size  string // "" where the launcher does not set the number of ranks
	// local are the variables with the number of ranks on this host; the first that is set counts. If the
	// variable has another value, here computes the number from it; "" means unknown.
	local string
	here  func(env variables, variable string) string
	// first returns the host of rank 0, and job the name of the job; with nil they are unknown.
	first, job func(env variables) string
}

func variable(name string) func(variables) string {
	return func(env variables) string { return env(name) }
}

// launchers are in the order in which FindLauncher tries them. Launchers with ambiguous variables come late:
// other programs set RANK, too, and Slurm's variables are also set under mpirun. The names of the variables
// were checked in processes under Open MPI 4.1.4, MPICH 4.0.2 and Slurm 22.05. For the other launchers the
// names are from the documentation.
var launchers = []launcher{
	{name: "Open MPI", needs: "OMPI_COMM_WORLD_RANK", size: "OMPI_COMM_WORLD_SIZE",
		local: "OMPI_COMM_WORLD_LOCAL_SIZE", job: variable("PMIX_NAMESPACE")},
	{name: "MVAPICH2", needs: "MV2_COMM_WORLD_RANK", size: "MV2_COMM_WORLD_SIZE",
		local: "MV2_COMM_WORLD_LOCAL_SIZE"},
	// PALS sets the number of ranks in PMI_SIZE if PMI is used, else in no variable.
	{name: "PALS", needs: "PALS_RANKID", size: "PMI_SIZE", local: "PALS_LOCAL_SIZE PMI_LOCAL_SIZE",
		job: variable("PALS_APID")},
	{name: "PMI", needs: "PMI_RANK", size: "PMI_SIZE", local: "MPI_LOCALNRANKS PMI_LOCAL_SIZE",
		first: pmiFirst, job: variable("PMI_JOBID")},
	// A batch script is one process and not rank 0 of several. There SLURM_PROCID is 0 and SLURM_NTASKS is
	// set, but the variables of a step are not.
	{name: "Slurm", needs: "SLURM_PROCID SLURM_STEP_NUM_TASKS", size: "SLURM_STEP_NUM_TASKS",
		local: "SLURM_STEP_TASKS_PER_NODE", here: slurmTasks, first: slurmFirst, job: slurmJob},
	{name: "Flux", needs: "FLUX_TASK_RANK", size: "FLUX_JOB_SIZE", local: "FLUX_JOB_NNODES",
		here: fluxTasks, job: variable("FLUX_JOB_ID")},
	// Kubeflow sets no local size: a pod has one rank.
	{name: "torchrun", needs: "RANK WORLD_SIZE MASTER_ADDR", size: "WORLD_SIZE",
		local: "LOCAL_WORLD_SIZE WORLD_SIZE", here: torchTasks, first: variable("MASTER_ADDR"),
		job: torchJob},
	{name: "Kubernetes", needs: "JOB_COMPLETION_INDEX", local: "JOB_COMPLETION_INDEX",
		here: func(variables, string) string { return "1" }, first: podFirst, job: podJob},
}

// FindLauncher reads the variables of the launcher that has started this process. It returns nil if no
// launcher has started it. An empty variable counts as not set.
func FindLauncher(env func(string) string) *Launched {
	for i := range launchers {
		l, set := &launchers[i], true
		for name := range strings.FieldsSeq(l.needs) {
			set = set && env(name) != ""
		}
		if set {
			return l.read(env)
		}
	}
	return nil
}

func (l *launcher) read(env variables) *Launched {
	rank, _, _ := strings.Cut(l.needs, " ")
	p := &Launched{Launcher: l.name, Rank: Value{env(rank), rank}, Size: Value{env(l.size), l.size}}
	for name := range strings.FieldsSeq(l.local) {
		if text := env(name); text != "" && !p.Local.Given() {
			if l.here != nil {
				text = l.here(env, name)
			}
			p.Local = Value{text, name}
		}
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

// fluxTasks divides the size of a Flux job by its number of nodes, because Flux spreads ranks evenly over
// nodes. If the division leaves a remainder, the local size is unknown.
func fluxTasks(env variables, variable string) string {
	size, err1 := strconv.Atoi(env("FLUX_JOB_SIZE"))
	nodes, err2 := strconv.Atoi(env(variable))
	if err1 != nil || err2 != nil || nodes < 1 || size%nodes != 0 {
		return ""
	}
	return strconv.Itoa(size / nodes)
}

// torchTasks returns torchrun's local size, which Kubeflow does not set: its pods have one rank each.
func torchTasks(env variables, variable string) string {
	if variable == "WORLD_SIZE" {
		return "1"
	}
	return env(variable)
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

// podFirst returns the host name of the pod with index 0, in the domain of the headless service. Only
// /etc/hosts has that domain, after the name of this pod.
func podFirst(env variables) string {
	job := podJob(env)
	_, hosts := thisPod()
	own := regexp.QuoteMeta(job + "-" + env("JOB_COMPLETION_INDEX") + ".")
	entry := regexp.MustCompile(`(?m)^[^#\n]*\s` + own + `([A-Za-z0-9.-]+)(?:\s|$)`)
	if found := entry.FindStringSubmatch(hosts); job != "" && found != nil {
		return job + "-0." + found[1]
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

var (
	slurmHost  = regexp.MustCompile(`^((?:[^][,]|\[\d+[^]]*\])+)(?:,|$)`)
	slurmRange = regexp.MustCompile(`\[(\d+)[^]]*\]`)
)

// slurmFirst returns the first host of the step: n01-ib of the list n[01-04,7]-ib,m2. Leading zeros are part
// of a host's name. It returns "" if the list cannot be parsed. SLURM_LAUNCH_NODE_IPADDR is another host: the
// one on which srun was typed.
func slurmFirst(env variables) string {
	if found := slurmHost.FindStringSubmatch(env("SLURM_STEP_NODELIST")); found != nil {
		return slurmRange.ReplaceAllString(found[1], "$1")
	}
	return ""
}

// slurmTasks returns this node's number of tasks from a list such as 2(x3),1: tasks per node, run-length
// encoded in the order of the nodes. SLURM_NODEID is the index of the node. Without it slurmTasks takes the
// first node: there is one node, or all nodes have equally many tasks. "" is a list without this node.
func slurmTasks(env variables, variable string) string {
	node, err := strconv.Atoi(cmp.Or(env("SLURM_NODEID"), "0"))
	for part := range strings.SplitSeq(env(variable), ",") {
		tasks, tail, _ := strings.Cut(part, "(x")
		times, _ := strconv.Atoi(strings.TrimSuffix(tail, ")"))
		if node -= max(1, times); node < 0 && err == nil {
			return tasks
		}
	}
	return ""
}
