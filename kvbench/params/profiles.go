package params

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// MLPerfProfile are users as MLPerf's program has them, who are no service's.
const MLPerfProfile = "mlperf"

// Profiles are the words of -profile.
var Profiles = []string{MLPerfProfile, "chat", "agentic", "rag"}

// profiles is what a word of -profile sets, parameters and keys of the YAML file, where nobody says
// otherwise. mlperf sets nothing: it is what everything is without a profile.
//
// What is measured in the two recorded sessions at hand and told by kv-cache-tester of 739 of a
// coding agent (80 requests each) is in agentic: common prompts of 14 to 17 thousand tokens with
// tools, answers of 100 to 2,900, results of tools of 300 to 2,300, tools that take 4 to 26 s and
// users 48 to 264 s, and every fourth request one of a sub-agent. How many of them start together,
// the smaller prompts, and what chat and rag set, are assumptions: whoever knows better has the
// keys.
var profileSettings = map[string]map[string]string{
	"chat": {
		"sessions.system_prompt_tokens": "[300, 800, 2000]",
		"sessions.questions":            "[1, 20]",
		"sessions.question_tokens":      "[10, 800]",
		"sessions.answer_tokens":        "[50, 800]",
		"sessions.think_seconds":        "[5, 120]",
		"sessions.fork_probability":     "0.05",
	},
	"agentic": {
		"sessions.system_prompt_tokens": "[17217, 15356, 14664, 7000, 2400]",
		"sessions.questions":            "[1, 12]",
		"sessions.question_tokens":      "[30, 1500]",
		"sessions.answer_tokens":        "[100, 2900]",
		"sessions.think_seconds":        "[30, 300]",
		"sessions.tool_calls":           "[3, 40]",
		"sessions.tool_tokens":          "[300, 2300]",
		"sessions.tool_seconds":         "[1, 26]",
		"sessions.agent_probability":    "0.02",
		"sessions.agents_together":      "[1, 4]",
		"sessions.agent_prompt_tokens":  "[2400, 6000]",
		"sessions.agent_tool_calls":     "[3, 20]",
		"sessions.fork_probability":     "0.02",
	},
	"rag": {
		"sessions.system_prompt_tokens": "[500]",
		"sessions.questions":            "[1, 8]",
		"sessions.question_tokens":      "[10, 300]",
		"sessions.answer_tokens":        "[50, 500]",
		"sessions.think_seconds":        "[5, 120]",
		"sessions.documents":            "10000",
		"sessions.retrieved":            "5",
		"sessions.document_tokens":      "[200, 1000]",
	},
}

// settingsOfProfile are the texts that a profile sets in a division. Sessions wait for their
// answers; in quick, whose window is shorter than a thought, nobody thinks.
func settingsOfProfile(name string, d Division) map[string]string {
	set := maps.Clone(profileSettings[name])
	if set == nil {
		return nil
	}
	// What agents keep of a full window differs; a thousand tokens and some are an assumption, too.
	set["arrival"] = "closed-loop"
	set["sessions.summary_tokens"] = "[1000, 4000]"
	if d == Quick {
		set["trace-speedup"] = "0"
	}
	return set
}

// profilesHelp tells what each profile sets.
func profilesHelp() string {
	// In the order of the keys, so that -h is the same every time: maps have none.
	var b strings.Builder
	for i, name := range Profiles {
		if i > 0 {
			b.WriteString("; ")
		}
		set := settingsOfProfile(name, Open)
		if b.WriteString(name + ":"); set == nil {
			b.WriteString(" MLPerf's users, nothing is set")
			continue
		}
		for j, key := range slices.Sorted(maps.Keys(set)) {
			if j > 0 {
				b.WriteString(",")
			}
			b.WriteString(" " + key + " " + set[key])
		}
	}
	return b.String() + ". In quick the last three set trace-speedup 0, too"
}

// OfSessions tells whether the users are sessions of a profile.
func (v *Values) OfSessions() bool {
	return v.Bench.Name == "Synthetic" && v.ProfileName != MLPerfProfile
}

// SessionBlock is how many tokens the blocks of a profile's sessions have: an engine's objects,
// else LMCache's chunks of 256.
func (v *Values) SessionBlock() int { return cmp.Or(v.CutTokens(), 256) }

// sessions refuses what sessions of a profile cannot be told.
func (r *resolver) sessions() {
	v := r.v
	if !v.OfSessions() {
		return
	}
	// A session without its answers has no next prompt: an open loop of them is no session. The
	// others change what a request of MLPerf's users is, and would be ignored in silence.
	of := " with -profile " + v.ProfileName
	r.want(v.ClosedLoop(), "arrival", "closed-loop"+of+": a session waits for its answers")
	for _, name := range []string{"turns", "decode-reads", "disable-multi-turn",
		"disable-prefix-caching", "prefill-only", "decode-only", "enable-rag",
		"enable-autoscaling", "request-rate"} {
		r.want(!v.Origin(name).byUser(), name, "absent"+of+
			", whose requests are those of sessions")
	}
	r.want(v.Profile.Sessions.Agents == 0 || len(v.Profile.Sessions.AgentPrompts) > 0,
		"sessions.agent_probability", "0 without sessions.agent_prompt_tokens")
	r.want(v.Profile.Sessions.Retrieved == 0 || v.Profile.Sessions.Documents > 0,
		"sessions.retrieved", "0 without sessions.documents")
}
