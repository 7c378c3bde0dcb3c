package params

import (
	"flag"
	"strconv"
	"strings"
)

// EnvPrefix begins the environment name of every parameter.
const EnvPrefix = "KVBENCH_"

// EnvName is the environment variable of a parameter: cache-dir is KVBENCH_CACHE_DIR.
func EnvName(parameter string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(parameter, "-", "_"))
}

// Set collects what was typed. Flags keep their text until Resolve, so that the flag package does not stop at the first bad one.
type Set struct {
	given map[string][]string
}

// Register defines the flags on fs. Call it before fs is parsed.
func Register(fs *flag.FlagSet) *Set {
	s := &Set{given: make(map[string][]string)}
	for i := range rows {
		if p := &rows[i]; !p.has(goFlag) {
			fs.Var(&flagText{s, p}, p.name, p.usage())
		}
	}
	return s
}

// HelpRequested tells whether -help-parameters was given.
func (s *Set) HelpRequested() bool {
	texts := s.given["help-parameters"]
	if len(texts) == 0 {
		return false
	}
	wanted, err := strconv.ParseBool(texts[len(texts)-1])
	return err == nil && wanted
}

// usage is the line of -help.
func (p *parameter) usage() string {
	var b strings.Builder
	b.WriteString(p.help)
	switch {
	case p.has(action) || p.show(p.def[0]) == "":
	case p.def == same(p.def[0]):
		b.WriteString(" (default " + p.show(p.def[0]) + ")")
	default:
		b.WriteString(" (default")
		for i, d := range divisions {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(" " + string(d) + " " + p.show(p.def[i]))
		}
		b.WriteString(")")
	}
	return b.String()
}

// flagText is the flag.Value of one parameter.
type flagText struct {
	set *Set
	p   *parameter
}

// String is asked by the flag package on a zero value too.
func (f *flagText) String() string {
	if f == nil || f.set == nil {
		return ""
	}
	return strings.Join(f.set.given[f.p.name], " ")
}

// Set takes any text.
func (f *flagText) Set(text string) error {
	f.set.given[f.p.name] = append(f.set.given[f.p.name], text)
	return nil
}

// IsBoolFlag lets -precondition stand for -precondition=true.
func (f *flagText) IsBoolFlag() bool {
	_, ok := f.p.value.(boolean)
	return ok
}
