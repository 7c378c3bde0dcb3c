package benchmarks

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"kvbench/kvbench/params"
	"kvbench/kvbench/units"
)

// readCommandLine registers the parameters and parses the flags. Its errors have at most three lines:
// what is wrong, a suggestion, and where the flags are listed. The flag package would print all flags,
// 220 lines. readCommandLine returns flag.ErrHelp unchanged.
func readCommandLine(set *flag.FlagSet, args []string) (*params.Set, error) {
	parameters := params.Register(set)
	args = joinFilter(args)
	out := set.Output()
	set.Init(set.Name(), flag.ContinueOnError)
	set.SetOutput(io.Discard)
	err := set.Parse(args)
	set.SetOutput(out)
	what, hint := "", ""
	switch {
	case errors.Is(err, flag.ErrHelp):
		return parameters, err
	case err != nil:
		what = err.Error()
		// The flag package's errors have no types.
		if name, unknown := strings.CutPrefix(what, "flag provided but not defined: -"); unknown {
			what, hint = "unknown flag -"+name, nearestFlag(set, name)
		}
	case set.NArg() > 0:
		what, hint = stray(set, args[:len(args)-set.NArg()], set.Arg(0))
	default:
		return parameters, nil
	}
	if hint != "" {
		hint = "  " + hint + "\n"
	}
	return parameters, fmt.Errorf("%s\n%s  -help-parameters lists kvbench's flags, `go help testflag` Go's own",
		what, hint)
}

// typed returns the value of a flag of the testing package that was on the command line, else "".
func typed(name string) (text string) {
	flag.Visit(func(f *flag.Flag) {
		if f.Name == testPrefix+name {
			text = f.Value.String()
		}
	})
	return text
}

// joinFilter joins -help-parameters and the filter after it to one argument, -help-parameters=FILTER.
// For the flag package -help-parameters is a boolean flag, and a word after it ends the flags.
func joinFilter(args []string) []string {
	for i := range len(args) - 1 {
		isHelp := strings.TrimLeft(args[i], "-") == "help-parameters"
		if isHelp && !strings.HasPrefix(args[i+1], "-") {
			return slices.Replace(slices.Clone(args), i, i+2, args[i]+"="+args[i+1])
		}
	}
	return args
}

// testPrefix is the prefix of the testing package's flags in the binary. Users of the go command omit
// it.
const testPrefix = "test."

// nearestFlag returns a hint about the flag that may have been meant, "" for none.
func nearestFlag(set *flag.FlagSet, typed string) string {
	if other := params.Instead[typed]; other != "" {
		return other
	}
	var known []string
	set.VisitAll(func(f *flag.Flag) {
		known = append(known, f.Name)
		if short, isGo := strings.CutPrefix(f.Name, testPrefix); isGo {
			known = append(known, short)
		}
	})
	// If a flag was typed with its value as one word, look up the part before the space.
	name, _, _ := strings.Cut(typed, " ")
	best, distance := units.Nearest(name, known)
	switch {
	case slices.Contains(known, testPrefix+name):
		return fmt.Sprintf("in the binary Go's own flags have a prefix: -%s%s", testPrefix, name)
	case !units.IsTypo(name, distance):
		return ""
	case !startedByGo() && slices.Contains(known, testPrefix+best):
		best = testPrefix + best
	}
	return "did you mean -" + best + "?"
}

// stray returns what is wrong with a word that is not a flag, and a hint. The flag package stops at such a
// word and ignores all arguments after it.
func stray(set *flag.FlagSet, before []string, word string) (what, hint string) {
	after := ""
	if len(before) > 0 {
		last := strings.TrimLeft(before[len(before)-1], "-")
		if f := set.Lookup(last); f != nil {
			after = " after -" + last
			// Only after a boolean flag a word is not the flag's value.
			if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
				hint = fmt.Sprintf("did you mean -%s=%s?", last, word)
			}
		}
	}
	return fmt.Sprintf("%q%s is not a flag, and Go ignores all arguments after it: kvbench does not start",
		word, after), hint
}

// flagValue returns the value of a flag of the testing package.
func flagValue(name string) string { return flag.Lookup(testPrefix + name).Value.String() }

// startedByGo reports whether this process is a child of the go command.
func startedByGo() bool { return isGoCommand(os.Getppid()) }

// howToRun is the text that the binary prints without arguments.
const howToRun = `kvbench.test measures the storage behind an LLM's KV cache. For example:
  kvbench.test -test.run '^$' -test.bench MaxStorageStress -division open -cache-dir DIR
  kvbench.test -scenario drive -cache-dir DIR
  kvbench.test -help-parameters     lists the flags; Go's own begin with -test. here
  kvbench.test -test.list .         lists benchmarks and unit tests
`
