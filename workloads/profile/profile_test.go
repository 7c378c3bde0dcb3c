package profile

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/workloads"
)

func TestDefaultProfile(t *testing.T) {
	p := Default()
	assert.Empty(t, p.Validate())
	assert.Equal(t, 25000, p.MaxContextTokens())
	assert.Equal(
		t,
		[]string{"batch", "responsive", "interactive"},
		[]string{
			workloads.Batch.String(),
			workloads.Responsive.String(),
			workloads.Interactive.String(),
		},
	)
	assert.Equal(t, 3, p.QoS[workloads.Interactive].Priority)
	assert.Equal(t, "350ms", p.QoS[workloads.Responsive].P999.String())
}

func TestProfileValidateListsEverything(t *testing.T) {
	p := Default()
	p.Templates = []Template{
		{Name: "", Context: [2]int{0, 5}, Generate: [2]int{9, 5}, Think: [2]float64{-1, 2}},
		{
			Name:     "a",
			Context:  [2]int{1, 5},
			Generate: [2]int{1, 5},
			Think:    [2]float64{1, math.NaN()},
		},
		{
			Name:     "a",
			Context:  [2]int{1, 5},
			Generate: [2]int{1, workloads.MaxTokens + 1},
			Think:    [2]float64{1, 2},
		},
	}
	p.InteractiveShare, p.ResponsiveThreshold = 0.6, 0.5
	p.NewConversation, p.SystemPromptShare = 1.5, math.NaN()
	p.MaxTurns, p.DecodeBatch, p.PrefillOnlyTokens = 0, 0, -1
	p.SystemPromptTokens = []int{5, 0}
	p.QoS[workloads.Batch].P99 = 0
	want := []string{
		"user template #1 must have a name",
		"user template #1: context range (0 to 5) must rise within 1 to 1073741824",
		"user template #1: generation range (9 to 5) must rise within 1 to 1073741824",
		"user template #1: think time range (-1 to 2 s) must rise within 0 to 86400 s",
		"user template a: think time range (1 to NaN s) must rise within 0 to 86400 s",
		"user template a is given twice",
		"user template a: generation range (1 to 1073741825) must rise within 1 to 1073741824",
		"interactive share (0.6) must not exceed the responsive threshold (0.5): both cut the " +
			"same draw",
		"new conversation probability (1.5) must be 0 to 1",
		"max turns per conversation (0) must be 1 to 100000",
		"system prompt share (NaN) must be 0 to 1",
		"system_prompt_tokens[1] (0) must be 1 to 1073741824",
		"prefill-only threshold (-1) must be 1 to 1073741824",
		"decode batch size (0) must be 1 to 1073741824",
		"qos targets of class batch (1s, 0s, 7.5s, 10s) must be above 0",
	}
	got := make([]string, 0, len(want))
	for _, err := range p.Validate() {
		got = append(got, fmt.Sprint(err))
	}
	assert.Equal(t, want, got)

	p = Default()
	p.Templates, p.SystemPromptTokens = nil, nil
	assert.Len(t, p.Validate(), 2)
}
