package params

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/group"
)

func TestDefaultResultsDirectoryNamesTimeAndProcess(t *testing.T) {
	v := good(t, Inputs{Stamp: "20261120-090507-77"})
	assert.Equal(t, "/base/kvbench-results/20261120-090507-77", v.ResultsDir)
	assert.Equal(t, v.ResultsDir, v.Text("results-dir"))
}

func TestNonceIsRandomOrGiven(t *testing.T) {
	assert.Equal(t, [16]byte{15: 0x1f}, good(t, Inputs{}, "-nonce", "1F").TrialNonce())
	v := good(t, Inputs{})
	assert.NotEqual(t, v.TrialNonce(), v.TrialNonce())
}

func TestTheCacheDirectoryIsCheckedWithoutTouchingAnything(t *testing.T) {
	in := Inputs{Base: "/base",
		CheckCacheDir: func(dir string) error { return errors.New(dir + " lies in /etc") }}
	_, err := typed(t, "-cache-dir=/etc/kv").Resolve(in)
	assert.EqualError(t, err, "-cache-dir: must be a directory that may be worked in (/etc/kv lies "+
		"in /etc), given /etc/kv (flag)")
	good(t, in) // the temporary directory is the suite's own
}

// A rank that a coordinator has started has the place that it was given, whatever its command line says.
func TestAStartedRank(t *testing.T) {
	value := func(text string) group.Value { return group.Value{Text: text, Variable: "X"} }
	v := good(t, Inputs{Agent: &group.Launched{Rank: value("3"), Size: value("4"), Local: value("4")}},
		"-ranks=4", "-rank-failure=continue")
	assert.False(t, v.Starts())
	assert.Equal(t, [3]int{3, 4, 4}, [3]int{v.Rank, v.Ranks, v.LocalRanks})
}
