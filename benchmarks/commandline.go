package benchmarks

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"kvbench/kvbench/params"
	"kvbench/kvbench/units"
)

// text is a flag of the testing package, which keeps what was typed until it is judged together
// with everything else.
type text struct {
	flag  *flag.Flag
	own   flag.Value // the testing package's
	typed string
	given bool
}

func (t *text) String() string { return t.typed }

func (t *text) Set(s string) error {
	t.typed, t.given = s, true
	return nil
}

// kept makes a text of a flag, until it is given back.
func kept(set *flag.FlagSet, name string) *text {
	f := set.Lookup(name)
	t := &text{flag: f, own: f.Value, typed: f.Value.String()}
	f.Value = t
	return t
}

// giveBack lets the testing package have its flag again, and what was typed.
func (t *text) giveBack() error {
	t.flag.Value = t.own
	if !t.given {
		return nil
	}
	if err := t.own.Set(t.typed); err != nil {
		return fmt.Errorf("-%s %s: %w", t.flag.Name, t.typed, err)
	}
	return nil
}

// commandLine is what was typed, as far as this package reads it itself.
type commandLine struct {
	params           *params.Set
	benchtime, count *text
}

// readCommandLine registers the parameters, and reads the flags as flag.Parse does. Its errors say
// in three lines what is wrong, what may have been meant and where to look, where the flag package
// answers with all flags that there are, 220 lines; flag.ErrHelp stays what it is.
func readCommandLine(set *flag.FlagSet, args []string) (*commandLine, error) {
	c := &commandLine{params: params.Register(set)}
	c.benchtime, c.count = kept(set, "test.benchtime"), kept(set, "test.count")
	// An error is returned rather than the end of the process, and nothing is printed.
	name, out := set.Name(), set.Output()
	args = joinFilter(args)
	set.Init(name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	err := set.Parse(args)
	set.Init(name, flag.ExitOnError)
	set.SetOutput(out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return c, err
	case err != nil:
		return c, flagError(set, err)
	case set.NArg() > 0:
		return c, strayError(set, args[:len(args)-set.NArg()], set.Arg(0))
	}
	return c, nil
}

// joinFilter makes one word of -help-parameters and the filter behind it. For the flag package it
// is a boolean flag, behind which a word ends the flags: -help-parameters alone means all of them.
func joinFilter(args []string) []string {
	for i := range len(args) - 1 {
		isHelp := strings.TrimLeft(args[i], "-") == "help-parameters"
		if isHelp && !strings.HasPrefix(args[i+1], "-") {
			return slices.Replace(slices.Clone(args), i, i+2, args[i]+"="+args[i+1])
		}
	}
	return args
}

// What the flag package says of a flag, which has no errors to ask.
var (
	unknownFlag = regexp.MustCompile(`^flag provided but not defined: -(.*)$`)
	invalidFlag = regexp.MustCompile(
		`^invalid (?:boolean )?value "(.*)" for (?:flag )?-([^:]*): (.*)$`)
)

// whereFlagsAre is the last of the three lines.
const whereFlagsAre = "-help-parameters lists kvbench's flags, `go help testflag` Go's own"

func flagError(set *flag.FlagSet, err error) error {
	// What is not known below is told as it is, such as a flag whose value is missing.
	what, hint := err.Error(), ""
	if m := unknownFlag.FindStringSubmatch(what); m != nil {
		what, hint = "unknown flag -"+m[1], nearestFlag(set, m[1])
	} else if m := invalidFlag.FindStringSubmatch(what); m != nil {
		what = fmt.Sprintf("-%s: cannot be %q: %s", m[2], m[1], m[3])
		if f := set.Lookup(m[2]); f != nil {
			hint = f.Usage
		}
	}
	return threeLines(what, hint)
}

func threeLines(what, hint string) error {
	if hint != "" {
		hint = "  " + hint + "\n"
	}
	return fmt.Errorf("%s\n%s  %s", what, hint, whereFlagsAre)
}

// nearestFlag says which flag may have been meant. Go's have a prefix in the binary that nobody
// types to the go command.
func nearestFlag(set *flag.FlagSet, typed string) string {
	if other := params.Instead[typed]; other != "" {
		return other
	}
	var known []string
	set.VisitAll(func(f *flag.Flag) {
		known = append(known, f.Name)
		if short, ours := strings.CutPrefix(f.Name, testPrefix); ours {
			known = append(known, short)
		}
	})
	// What was typed with its value in one word is an unknown name as a whole.
	name, _, _ := strings.Cut(typed, " ")
	best, distance := units.Nearest(name, known)
	if slices.Contains(known, testPrefix+name) {
		return fmt.Sprintf("in the binary Go's own flags have a prefix: -%s%s", testPrefix, name)
	}
	if !units.Slip(name, distance) {
		return ""
	}
	if !startedByGo() && slices.Contains(known, testPrefix+best) {
		best = testPrefix + best
	}
	return "did you mean -" + best + "?"
}

// testPrefix begins the testing package's flags in the binary.
const testPrefix = "test."

// strayError refuses a word that is no flag: Go stops reading there, and everything behind it would
// be thrown away without a word.
func strayError(set *flag.FlagSet, before []string, word string) error {
	behind, hint := "", ""
	if len(before) > 0 {
		// The flag before it is to blame if it takes no value of its own, as only booleans do.
		last := strings.TrimLeft(before[len(before)-1], "-")
		if f := set.Lookup(last); f != nil {
			behind = " behind -" + last
			if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
				hint = fmt.Sprintf("did you mean -%s=%s?", last, word)
			}
		}
	}
	return threeLines(fmt.Sprintf("%q%s is no flag: everything after it would be ignored", word,
		behind), hint)
}

// startedByGo tells whether this process is a child of the go command.
func startedByGo() bool { return isGoCommand(os.Getppid()) }

// howToRun is what the binary says that was started with nothing.
const howToRun = `kvbench.test measures the storage behind an LLM's KV cache. For example:
  kvbench.test -test.run '^$' -test.bench MaxStorageStress -division open -cache-dir DIR
  kvbench.test -help-parameters     lists the flags; Go's own begin with -test. here
  kvbench.test -test.list .         lists benchmarks and unit tests
`
