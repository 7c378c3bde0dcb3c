package profile

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/workloads"
)

func TestDefaultProfile(t *testing.T) {
	p := Default()
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
