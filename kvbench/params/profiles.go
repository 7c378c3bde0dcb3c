package params

import (
	"cmp"
	_ "embed"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// MLPerfProfile are users as MLPerf's program has them, which imitate no service.
const MLPerfProfile = "mlperf"

//go:embed profiles.yaml
var profilesText []byte

// profiles are the settings of each word of -profile.
var profiles = func() (all map[string]map[string]string) {
	if err := yaml.Unmarshal(profilesText, &all); err != nil {
		panic(err)
	}
	return all
}()

// settingsOfProfile are the texts that a profile sets in a division: in quick, whose window is
// shorter than a think time, there is none.
func settingsOfProfile(name string, d Division) map[string]string {
	set := maps.Clone(profiles[name])
	if d == Quick && len(set) > 0 {
		set["trace-speedup"] = "0"
	}
	return set
}

// profilesHelp is what each profile sets.
func profilesHelp() string {
	list := []string{MLPerfProfile + ": MLPerf's users, nothing is set"}
	for _, name := range []string{"chat", "agentic", "rag"} {
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(profiles[name])) {
			pairs = append(pairs, key+" "+profiles[name][key])
		}
		list = append(list, name+": "+strings.Join(pairs, ", "))
	}
	return strings.Join(list, "; ") + ". In quick the last three set trace-speedup 0, too"
}

// OfSessions reports whether the users are sessions of a profile.
func (v *Values) OfSessions() bool {
	return v.Bench.Name == "Synthetic" && v.ProfileName != MLPerfProfile
}

// SessionBlock is how many tokens the blocks of a profile's sessions have: an engine's objects,
// else LMCache's chunks of 256.
func (v *Values) SessionBlock() int { return cmp.Or(v.CutTokens(), 256) }
