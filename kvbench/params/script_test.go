package params

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"kvbench/tracing/host"
)

// TestScripts runs the scripts of testdata/resolve: which values are in force, where they came
// from, and what is refused. Rewrite them with -rewrite.
//
//	file NAME                        a file of that text; $DIR is its directory
//	each [BENCHMARK] [show=(a,b)]    each line is a command of its own: its flags, the
//	                                 variables of its environment (NAME=value), -benchtime, -count
//	unused BENCHMARK…                the same, and all benchmarks are selected: see Unused
//	scenario [BENCHMARK] [show=(a,b)]  as each: the values of every job of the scenario
//	yaml                             each line is a file, whose lines end with \n
//	environment                      each line is a variable: see UnknownEnvironment
//	capacity, memory                 what a machine has for a run
//	early                            what IOTimeout finds on each command line
//
// A refusal is a line of the output, or "ok". Show prints parameters and keys with their origins;
// words that begin with a capital are methods or fields of Values, or summaries: see shown. $DATA is
// the directory testdata.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/resolve", func(t *testing.T, path string) {
		dir := t.TempDir()
		data, err := filepath.Abs("testdata")
		require.NoError(t, err)
		directories := strings.NewReplacer("$DIR", dir, "$DATA", data)
		require.NoError(t, os.Symlink(dir, filepath.Join(dir, "link")))
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			switch d.Cmd {
			case "file":
				name := filepath.Join(dir, d.CmdArgs[0].Key)
				require.NoError(t, os.WriteFile(name, []byte(d.Input), 0o600))
				return ""
			case "yaml":
				for line := range strings.Lines(d.Input) {
					text := strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(line)
					name := filepath.Join(dir, "c.yaml")
					require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
					scriptResolve(t, &out, line, Inputs{Base: "/base"}, []string{"-config=" + name}, d)
				}
			case "environment":
				out.WriteString(UnknownEnvironment(strings.Split(d.Input, "\n")).Error() + "\n")
			case "capacity", "memory":
				for line := range strings.Lines(d.Input) {
					if d.Cmd == "memory" {
						out.WriteString(scriptMemory(line) + "\n")
					} else {
						out.WriteString(scriptCapacity(t, line) + "\n")
					}
				}
			case "each", "scenario", "unused", "early":
				for line := range strings.Lines(d.Input) {
					in, args := scriptCommand(t, directories.Replace(line))
					switch d.Cmd {
					case "each":
						scriptResolve(t, &out, line, in, args, d)
					case "scenario":
						s, bad := typed(t, args...).Scenario(in)
						if len(bad) > 0 {
							fmt.Fprintln(&out, bad)
							continue
						}
						fmt.Fprintf(&out, "%q, in turn %v\n", s.About, s.InTurn)
						for _, in.Job = range s.Jobs {
							fmt.Fprint(&out, in.Job.Bench, ": ")
							scriptResolve(t, &out, line, in, args, d)
						}
					case "unused":
						scriptUnused(t, &out, in, args, d)
					case "early":
						fmt.Fprintln(&out, typed(t, args...).IOTimeout(in))
					}
				}
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			return strings.NewReplacer(dir, "$DIR", data, "$DATA").Replace(out.String())
		})
	})
}

var variable = regexp.MustCompile(`^[A-Z][A-Z0-9_]*=`)

// scriptCommand reads a command line: words in single quotes may have spaces.
func scriptCommand(t *testing.T, line string) (in Inputs, args []string) {
	t.Helper()
	in.Base = "/base"
	in.Machine = &Machine{Limits: host.Limits{Cores: 4, MemoryAvailable: 25 << 30}, Card: func() int64 { return 0 },
		Capacity: func(v *Values) int64 { return int64(len(v.CacheDirs)) * 100 << 30 }}
	var env []string
	for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1) {
		word = strings.Trim(word, "'")
		name, text, _ := strings.Cut(word, "=")
		switch {
		case name == "-benchtime":
			in.BenchTime = text
		case name == "-count":
			in.Count = text
		case variable.MatchString(word):
			env = append(env, name, text)
		case word != "-":
			args = append(args, word)
		}
	}
	in.Env = environment(env...)
	return in, args
}

func scriptResolve(t *testing.T, out *strings.Builder, line string, in Inputs, args []string,
	d *datadriven.TestData) {
	var show []string
	for _, a := range d.CmdArgs {
		if a.Key == "show" {
			show = a.Vals
		} else {
			in.Bench = bench(t, a.Key)
		}
	}
	v, err := typed(t, args...).Resolve(in)
	switch {
	case err != nil:
		fmt.Fprintln(out, err)
	case show == nil:
		fmt.Fprintln(out, "ok", strings.TrimSpace(line))
	default:
		for i, name := range show {
			text := shown(v, name)
			if byName[name] != nil {
				text = fmt.Sprintf("%s = %s (%s)", name, v.Text(name), v.Origin(name))
			}
			fmt.Fprint(out, map[bool]string{true: "; "}[i > 0], text)
		}
		fmt.Fprintln(out)
	}
}

// shown is what follows from the values: a summary, a method with at most one number behind a colon,
// or a field.
func shown(v *Values, name string) string {
	switch name {
	case "Ranks":
		return fmt.Sprintf("rank %d of %d, %d here", v.Rank, v.Ranks, v.LocalRanks)
	case "Runs":
		return fmt.Sprintf("starts %v, meets %v, alone %v, all here %v", v.Starts(), v.Meets(),
			v.Alone(), v.AllHere())
	case "Points":
		var list []string
		for _, p := range v.Points {
			list = append(list, p.Point)
		}
		return strings.Join(list, " ")
	case "Skip":
		return fmt.Sprintf("skips %q", v.Skip())
	case "CacheDirs":
		return fmt.Sprintf("%q", v.CacheDirs)
	case "Device":
		return fmt.Sprintf("%+v", *v.Device)
	case "Objects":
		return fmt.Sprintf("%d objects, %d bytes, %d tokens, tails %v", v.RankObjects(),
			v.Sizer().Bytes(v.ObjectTokens), v.CutTokens(), v.Tails())
	case "Depth":
		return fmt.Sprintf("depth %d, %d workers, %d in flight, %d and %d threads, %q without memory",
			v.Depth(), v.WorkerCount(), v.InFlight(), v.ReadThreads, v.WriteThreads,
			v.PolicyWithoutMemory())
	case "Checkpoint":
		spec, _ := v.CheckpointSpec()
		first, count := v.CheckpointShare(spec)
		writes, reads, within := v.CheckpointRuns()
		return fmt.Sprintf("%s: %d accelerators at 1/%d, from %d on %d, shift %d; %d written, %d read, "+
			"within %v; %d chunks, %d B of a range", spec.Key, spec.Accelerators, spec.Scale, first,
			count, v.CheckpointShift(spec), writes, reads, within, v.StreamDepth(), v.StreamRange())
	case "Apart":
		v.Filesystems = 2
		return fmt.Sprint(v.CheckFilesystems())
	}
	method, number, _ := strings.Cut(name, ":")
	m := reflect.ValueOf(v).MethodByName(method)
	if !m.IsValid() {
		return fmt.Sprintf("%s %+v", name, reflect.ValueOf(v).Elem().FieldByName(name))
	}
	var in []reflect.Value
	if n, err := strconv.Atoi(number); err == nil {
		in = append(in, reflect.ValueOf(n).Convert(m.Type().In(0)))
	}
	text := name
	for _, x := range m.Call(in) {
		text += fmt.Sprintf(" %+v", x)
	}
	return text
}

func scriptUnused(t *testing.T, out *strings.Builder, in Inputs, args []string,
	d *datadriven.TestData) {
	var plans []*Values
	for _, a := range d.CmdArgs {
		in.Bench = bench(t, a.Key)
		v, _ := typed(t, args...).Resolve(in) // what is refused is not reported twice
		plans = append(plans, v.Points...)
	}
	bad, notes := Unused(plans)
	for _, text := range bad {
		fmt.Fprintln(out, text)
	}
	for _, text := range notes {
		fmt.Fprintln(out, "note:", text)
	}
	if len(bad)+len(notes) == 0 {
		fmt.Fprintln(out, "ok")
	}
}
