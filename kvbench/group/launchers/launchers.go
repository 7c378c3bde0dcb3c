package launchers

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net"
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

// Place is what a launcher's variables hold for a process. Numbers are texts, not yet checked: the
// user may give each of them.
type Place struct {
	// Family is the launcher's name.
	Family string
	Rank   Value
	// Size is not given by every family, and SizeVariable is where it was looked for, empty where
	// there is no such variable.
	Size         Value
	SizeVariable string
	// Local is how many ranks are on this host. Not given is unknown, which is not "all of them".
	Local Value
	// Problem is why Rank or Local cannot be used, "" if they can.
	Problem string

	env    func(string) string
	family *family
}

// Machine is the facts about a process outside its environment.
type Machine struct {
	Hostname string // of the kernel, which in a pod is the pod's name
	Hosts    string // the text of /etc/hosts
}

// family is a launcher's variables. Rank, size and local size are taken from one family: inside an
// allocation Slurm's variables stay set under mpirun, where they describe something else.
type family struct {
	name string
	// counts are the variables that all must be set for the family to apply.
	counts []string
	rank   string
	size   string   // "" where the launcher does not say
	local  []string // the first that is set counts
	// alone is the variable of a launcher that starts one rank on a host where local holds no other
	// number; "" is unknown.
	alone string
	// here makes the local size where no variable holds it; "" is unknown. The error is about it.
	here func(env func(string) string) (Value, error)
	// first is the host of rank 0, "" where the family does not say.
	first func(env func(string) string, m Machine) string
	job   func(env func(string) string, m Machine) string
}

func variable(name string) func(func(string) string, Machine) string {
	return func(env func(string) string, _ Machine) string { return env(name) }
}

// families in the order in which they are tried. What is generic comes late: RANK is set by other
// programs, too, and Slurm's variables below mpirun.
var families = []family{
	{name: "Open MPI", counts: []string{"OMPI_COMM_WORLD_RANK"}, rank: "OMPI_COMM_WORLD_RANK",
		size: "OMPI_COMM_WORLD_SIZE", local: []string{"OMPI_COMM_WORLD_LOCAL_SIZE"},
		job: variable("PMIX_NAMESPACE")},
	{name: "MVAPICH2", counts: []string{"MV2_COMM_WORLD_RANK"}, rank: "MV2_COMM_WORLD_RANK",
		size: "MV2_COMM_WORLD_SIZE", local: []string{"MV2_COMM_WORLD_LOCAL_SIZE"}},
	// Its total size stands in PMI_SIZE where PMI is used, else nowhere.
	{name: "PALS", counts: []string{"PALS_RANKID"}, rank: "PALS_RANKID", size: "PMI_SIZE",
		local: []string{"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"}, job: variable("PALS_APID")},
	{name: "PMI", counts: []string{"PMI_RANK"}, rank: "PMI_RANK", size: "PMI_SIZE",
		local: []string{"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"}, first: pmiFirst,
		job: variable("PMI_JOBID")},
	// In a batch script SLURM_PROCID is 0 and SLURM_NTASKS is set, and no step is: one process,
	// which is not rank 0 of many.
	{name: "Slurm", counts: []string{"SLURM_STEP_NUM_TASKS"}, rank: "SLURM_PROCID",
		size: "SLURM_STEP_NUM_TASKS", here: slurmLocal, first: slurmFirst, job: slurmJob},
	{name: "Flux", counts: []string{"FLUX_TASK_RANK"}, rank: "FLUX_TASK_RANK",
		size: "FLUX_JOB_SIZE", here: fluxLocal, job: variable("FLUX_JOB_ID")},
	// Kubeflow sets no local size: a pod has one rank.
	{name: "torchrun", counts: []string{"RANK", "WORLD_SIZE", "MASTER_ADDR"}, rank: "RANK",
		size: "WORLD_SIZE", local: []string{"LOCAL_WORLD_SIZE"}, alone: "WORLD_SIZE",
		first: variable("MASTER_ADDR"), job: torchJob},
	{name: "Kubernetes", counts: []string{"JOB_COMPLETION_INDEX"}, rank: "JOB_COMPLETION_INDEX",
		alone: "JOB_COMPLETION_INDEX", first: podFirst, job: podJob},
}

// Find tries the families in their order. It is false where no launcher has started this process.
// An empty variable counts as not set.
func Find(env func(string) string) (Place, bool) {
	for i := range families {
		f := &families[i]
		set := true
		for _, name := range f.counts {
			set = set && env(name) != ""
		}
		if set {
			return f.place(env), true
		}
	}
	return Place{}, false
}

func (f *family) place(env func(string) string) Place {
	p := Place{Family: f.name, SizeVariable: f.size, env: env, family: f}
	value := func(name string) Value {
		if text := env(name); text != "" {
			return Value{text, name}
		}
		return Value{}
	}
	p.Rank, p.Size = value(f.rank), value(f.size)
	for _, name := range f.local {
		p.Local = cmp.Or(p.Local, value(name))
	}
	if f.alone != "" {
		p.Local = cmp.Or(p.Local, Value{"1", f.alone})
	}
	var err error
	if f.here != nil && p.Size.Given() {
		p.Local, err = f.here(env)
	}
	switch {
	case !p.Rank.Given():
		p.Problem = fmt.Sprintf("%s: must be set when %s is: give -rank, or start under %s",
			f.rank, f.counts[0], f.name)
	case err != nil:
		p.Problem = err.Error()
	}
	return p
}

// First is the host of rank 0, "" where no variable holds it.
func (p Place) First(m Machine) string {
	if p.family == nil || p.family.first == nil {
		return ""
	}
	return p.family.first(p.env, m)
}

// Job is the name of the job, the same for all of its ranks and for no other job at the same time,
// "" where the launcher has none.
func (p Place) Job(m Machine) string {
	if p.family == nil || p.family.job == nil {
		return ""
	}
	if id := p.family.job(p.env, m); id != "" {
		return p.family.name + " " + id
	}
	return ""
}

// pmiFirst: srun --mpi=pmi2 sets the variables of PMI and those of its step. They are of one job
// when they agree; below mpirun a step of another size may surround the ranks.
func pmiFirst(env func(string) string, m Machine) string {
	if env("SLURM_STEP_NUM_TASKS") == env("PMI_SIZE") && env("SLURM_PROCID") == env("PMI_RANK") {
		return slurmFirst(env, m)
	}
	return ""
}

// fluxLocal: Flux says on how many nodes a job runs, and spreads it evenly where that is possible.
func fluxLocal(env func(string) string) (Value, error) {
	size, err1 := strconv.Atoi(env("FLUX_JOB_SIZE"))
	nodes, err2 := strconv.Atoi(env("FLUX_JOB_NNODES"))
	if err1 != nil || err2 != nil || nodes < 1 || size%nodes != 0 {
		return Value{}, nil
	}
	return Value{strconv.Itoa(size / nodes), "FLUX_JOB_NNODES"}, nil
}

// torchJob: without torchrun's own id the port of its store, which it listens at itself,
// distinguishes the jobs of one host.
func torchJob(env func(string) string, _ Machine) string {
	return cmp.Or(env("TORCHELASTIC_RUN_ID"), env("MASTER_PORT"))
}

// pod cuts the index off the name of a pod of an Indexed Job, which is <job>-<index>.
func pod(env func(string) string, m Machine) (job string, ok bool) {
	name, _, _ := strings.Cut(m.Hostname, ".")
	return strings.CutSuffix(name, "-"+env("JOB_COMPLETION_INDEX"))
}

func podJob(env func(string) string, m Machine) string {
	if job, ok := pod(env, m); ok {
		return job
	}
	return ""
}

var domain = regexp.MustCompile(`^[A-Za-z0-9.-]+$`)

// podFirst is the pod's own name in its domain, with the index 0. The domain of a headless service
// stands nowhere but in /etc/hosts.
func podFirst(env func(string) string, m Machine) string {
	job, ok := pod(env, m)
	if !ok {
		return ""
	}
	own := job + "-" + env("JOB_COMPLETION_INDEX") + "."
	for line := range strings.Lines(m.Hosts) {
		line, _, _ = strings.Cut(line, "#")
		for _, name := range strings.Fields(line) {
			if rest, ok := strings.CutPrefix(name, own); ok && domain.MatchString(rest) {
				return job + "-0." + rest
			}
		}
	}
	return ""
}
