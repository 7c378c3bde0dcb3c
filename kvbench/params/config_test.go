package params

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/workloads"
	"kvbench/workloads/users"
)

// testDirectory is this package's, absolute: testdata lies in it.
var testDirectory, _ = os.Getwd()

// pythonFile resolves with a file written for the Python benchmark, which must load unchanged.
func pythonFile(t testing.TB, args ...string) *Values {
	t.Helper()
	return good(t, Inputs{Base: testDirectory}, append(args, "-config=testdata/python.yaml")...)
}

func TestPythonKeysAct(t *testing.T) {
	v := pythonFile(t, "-generation-mode=fast", "-model=house-mla")
	ms := time.Millisecond
	p := v.Profile
	assert.Equal(t, users.Template{Name: "coding", Context: [2]int{2048, 20000},
		Generate: [2]int{80, 400}, Think: [2]float64{0.3, 1}}, p.Templates[1])
	assert.Equal(t, workloads.QoS{P95: 60 * ms, P99: 110 * ms, P999: 160*ms + 500*time.Microsecond,
		P9999: 210 * ms, Priority: 30}, p.QoS[workloads.Interactive])
	assert.Equal(t, 1200*ms, p.QoS[workloads.Batch].P95)
	assert.Equal(t, []float64{0.2, 0.6, 0.3, 0.25}, []float64{p.InteractiveShare,
		p.ResponsiveThreshold, p.SystemPromptShare, p.NewConversation})
	assert.Equal(t, []int{40, 16}, []int{p.MaxTurns, p.DecodeBatch})
	assert.Equal(t, 3*ms, v.GenerationTime)
	assert.Zero(t, pythonFile(t).GenerationTime)
	assert.EqualValues(t, 10*(256+32)*2, v.Model.BytesPerToken())
	assert.EqualValues(t, 20*8*128*2, pythonFile(t, "-model=house-wide").Model.BytesPerToken())
	assert.Equal(t, "Tiny 1B", pythonFile(t).Model.Name)
}

func TestNotesTellWhichKeysAct(t *testing.T) {
	v := pythonFile(t)
	acts, idle := map[string]bool{}, map[string]string{}
	for _, p := range v.Parameters() {
		if section, _, below := strings.Cut(p.Name, "."); below {
			acts[section] = true
		}
	}
	for _, n := range v.Notes() {
		assert.Regexp(t, `^[1-9]\d*$`, n.Line, n.Key)
		assert.NotEmpty(t, n.Why, n.Key)
		idle[n.Key] = n.Why
	}
	for _, s := range []string{"user_templates", "generation_timing", "qos_profiles",
		"qos_distribution", "prefix_cache", "conversation", "decode", "rag", "sharegpt"} {
		assert.True(t, acts[s], s)
	}
	assert.Equal(t, "the autoscaler begins with -num-users and keeps between 1 and 100000",
		idle["autoscaler.min_users"])
	assert.Len(t, idle, 27)
	var help strings.Builder
	require.NoError(t, v.WriteHelp(&help, ""))
	assert.Contains(t, help.String(), ": autoscaler.min_users: "+idle["autoscaler.min_users"])
	assert.Contains(t, help.String(), "decode.batch_size = 16")
}

func TestOurOwnSectionHoldsParametersByName(t *testing.T) {
	base := t.TempDir()
	text, err := os.ReadFile("testdata/parameters.yaml")
	require.NoError(t, err)
	file := filepath.Join(base, "p.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	v := good(t, Inputs{Base: base}, "-config=p.yaml")
	assert.Equal(t, Open, v.Division)
	assert.Equal(t, 12, v.Users)
	assert.Equal(t, filepath.Join(base, "data/kv"), v.CacheDir())
	assert.True(t, v.Precondition)
	assert.Equal(t, 5*time.Second, v.Settle)
	assert.Equal(t, 2*units.MiB, v.ChunkSize)
	assert.Equal(t, []int{7, 8}, v.Profile.SystemPromptTokens)
	assert.Equal(t, []Axis{{"io-depth", []string{"1", "2"}}}, v.Sweep)
	assert.Equal(t, "house", v.Model.Key)
	assert.Equal(t, file+":3", v.Origin("num-users").String())
	assert.Contains(t, v.Overrides(), result.Parameter{
		Name: "prefix_cache.system_prompt_tokens", Value: "[7, 8]", Origin: file + ":14"})
}

func TestAllProblemsOfAFileAtOnceWithTheirLines(t *testing.T) {
	file := filepath.Join(testDirectory, "testdata/broken.yaml")
	texts := wrong(t, Inputs{}, "-config="+file)
	for i := range texts {
		texts[i] = strings.TrimPrefix(strings.ReplaceAll(texts[i], "("+file, "("), file+":")
	}
	assert.Equal(t, []string{
		`3: unknown key "interactive_probabilty" in section qos_distribution; nearest known key: "interactive_probability"`,
		`7: mapping key "batch_size" already defined at line 6`,
		`8: unknown key "user_template" at the top of the file; nearest known key: "user_templates"`,
		`15: unknown key "chatbots" in section user_templates; nearest known key: "chatbot"`,
		`16: section conversation must be a mapping of keys to values`,
		`17: unknown key "num-users" at the top of the file; nearest known key: "parameters: num-users"`,
		`18: unknown key "decode.batch_size" at the top of the file; nearest known key: "decode"`,
		`24: unknown key "hidden_size" in section model_configs.odd; nearest known key: "hidden_dim"`,
		`25: model_configs.empty: kv_heads is 0, must be 1 to 1048576`,
		`25: model_configs.empty: heads is 0, must be 1 to 1048576`,
		`25: model_configs.empty: hidden is 0, must be 1 to 1048576`,
		`28: unknown key "num_users" in section parameters; nearest known key: "num-users"`,
		`29: unknown key "duration" in section parameters: it is -benchtime here, such as -benchtime 60s`,
		`30: parameters.results-dir must be one value (text, a number, true or false)`,
		`32: unknown key "config" in section parameters; nearest known key: "the flag -config"`,
		"-num-users: must be a whole number in 1…100000, given 0 (:31)",
		"user_templates.chatbot.context_range: must be [low, high] with low at most high, " +
			"given [10, 5] (:12)",
		"user_templates.chatbot.generation_range: must be [low, high] with low at most high, " +
			"given [1] (:13)",
		"user_templates.chatbot.think_time_range: must be a list such as [1, 2], given \"fast\" (:14)",
		"qos_distribution.responsive_threshold: must be a number in 0…1, given \"high\" (:4)",
		"prefix_cache.system_prompt_hit_probability: must be a number in 0…1, given 1.5 (:20)",
		"decode.batch_size: must be a whole number in 1…1073741824, given 1.5 (:6)",
	}, texts)
}

func TestAFileThatCannotBeRead(t *testing.T) {
	assert.Contains(t, wrong(t, Inputs{}, "-config="+t.TempDir())[0], "is a directory")
	big := writeFile(t, "big.yaml", strings.Repeat("#\n", maxConfigBytes/2+1))
	assert.Contains(t, wrong(t, Inputs{}, "-config="+big)[0], "larger than 4 MiB")
}
