package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLaunchers runs the script testdata/launchers. "define NAME" gives the variables of a launcher
// a name; "find NAMES" shows what is found with those of all names, the first one's last, with the
// input's, and without=VARIABLE; "pairs" shows it for every two names. Rewrite it with -rewrite.
func TestLaunchers(t *testing.T) {
	named := map[string]map[string]string{}
	var order []string
	datadriven.RunTest(t, "testdata/launchers", func(t *testing.T, d *datadriven.TestData) string {
		env := map[string]string{}
		for line := range strings.Lines(d.Input) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			env[name] = value
		}
		pod, hosts, without := "kv-3", "svc.ns.svc.cluster.local", ""
		d.MaybeScanArgs(t, "pod", &pod, &hosts)
		d.MaybeScanArgs(t, "without", &without)
		inPod(t, pod, "127.0.0.1 localhost\n# "+pod+".comment.example\n"+
			strings.TrimSuffix("10.1.0.7\t"+pod+"."+hosts, ".")+"\t"+pod+"\n")
		var names []string
		for _, arg := range d.CmdArgs {
			if len(arg.Vals) == 0 {
				names = append(names, arg.Key)
			}
		}
		var out strings.Builder
		switch d.Cmd {
		case "define":
			named[names[0]], order = env, append(order, names[0])
			fmt.Fprintln(&out, found(env))
		case "find":
			for _, name := range slices.Backward(names) {
				require.Contains(t, named, name)
				maps.Copy(env, named[name])
			}
			if without != "" {
				require.Contains(t, env, without)
				delete(env, without)
			}
			fmt.Fprintln(&out, found(env))
		case "pairs":
			for i, a := range order {
				for _, b := range order[i+1:] {
					both := maps.Clone(named[b])
					maps.Copy(both, named[a])
					fmt.Fprintf(&out, "%s and %s: %s\n", a, b, found(both))
				}
			}
		}
		return out.String()
	})
	assert.Len(t, order, len(launchers))
}

// found describes what is found in an environment.
func found(env map[string]string) string {
	p := FindLauncher(in(env))
	if p == nil {
		return "none"
	}
	text := fmt.Sprintf("%s: rank %s by %s", p.Launcher, p.Rank.Text, p.Rank.Variable)
	for _, v := range []struct{ name, text string }{{"of ", p.Size.Text}, {"here ", p.Local.Text},
		{"by ", p.Local.Variable}, {"job ", p.Job}, {"first ", p.First}} {
		if v.text != "" {
			text += ", " + v.name + v.text
		}
	}
	return text
}

// inPod makes this process look like one of a pod.
func inPod(t *testing.T, name, hosts string) {
	real := thisPod
	t.Cleanup(func() { thisPod = real })
	thisPod = func() (string, string) { return name, hosts }
}

func in(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

func TestLocalAddress(t *testing.T) {
	for _, job := range []string{"", "Open MPI a", "Open MPI b"} {
		assert.Regexp(t, `^127\.0\.0\.1:[12]\d{4}$`, LocalAddress(job))
	}
	assert.NotEqual(t, LocalAddress("Open MPI a"), LocalAddress("Open MPI b"))
}

func TestFirstOfAStep(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "a": "a", "a,b": "a", "n[01-04,7],m2": "n01", "n[7,01]": "n7", "n[3]-ib": "n3-ib",
		"r[1-2]n[05-06]": "r1n05", "n[": "", "n[]": "", "n[x]": "", "m2,n[1-": "m2",
	} {
		assert.Equal(t, want, slurmFirst(in(map[string]string{"SLURM_STEP_NODELIST": list})), list)
	}
}

func TestTasksOfANode(t *testing.T) {
	for _, c := range []struct{ list, id, want string }{
		{"3", "", "3"},
		{"3", "0", "3"},
		{"2(x3),1", "2", "2"},
		{"2(x3),1", "3", "1"},
		{"2(x3),1", "4", ""},
		{"1", "here", ""},
	} {
		env := map[string]string{"SLURM_STEP_TASKS_PER_NODE": c.list, "SLURM_NODEID": c.id}
		assert.Equal(t, c.want, slurmTasks(in(env), "SLURM_STEP_TASKS_PER_NODE"), "%s at %s", c.list, c.id)
	}
}
