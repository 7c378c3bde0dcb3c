package params

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/units"
)

func TestTheRateOfAGPU(t *testing.T) {
	users := Inputs{Bench: bench(t, "MultiTurn")}
	v := good(t, users, "-gpu=H100", "-model=llama3.1-8b", "-division=open")
	cost, rate := v.Cost()
	assert.Equal(t, "22200", cost.String())
	assert.Equal(t, "h100", rate.GPU)
	v = good(t, users, "-prefill-rate=a=1e-05,b=1e-10")
	cost, rate = v.Cost()
	assert.Equal(t, "a=1e-05,b=1e-10", cost.String())
	assert.Empty(t, rate.GPU)
}

func TestTheContextWindow(t *testing.T) {
	in := Inputs{Bench: bench(t, "MaxStorageStress")}
	v := good(t, in, "-division=open", "-model=llama2-7b")
	assert.Equal(t, 4096, v.ContextWindow())
	tokens, _ := v.LargestEntry()
	assert.Equal(t, 4096, tokens)
	assert.Equal(t, []string{"coding (up to 25000)", "document (up to 16384)"}, v.CutTemplates())
	v = good(t, in, "-division=closed")
	assert.Zero(t, v.ContextWindow(), "MLPerf's users have none")
	assert.Empty(t, v.CutTemplates())
	assert.Zero(t, good(t, in, "-division=quick").ContextWindow(), "tiny-1b has none")
	file := writeFile(t, "m.yaml", "model_configs: {small: {num_layers: 1, hidden_dim: 64, "+
		"num_heads: 2, kv_heads: 1, context_window: 2048}}\n")
	assert.Equal(t, 2048, good(t, in, "-config="+file, "-model=small").ContextWindow())
}

func TestTheCacheDirectoryIsCheckedWithoutTouchingAnything(t *testing.T) {
	in := Inputs{CheckCacheDir: func(dir string) error { return errors.New(dir + " lies in /etc") }}
	assert.Equal(t, []string{"-cache-dir: must be a directory that may be worked in (/etc/kv " +
		"lies in /etc), given /etc/kv (flag)"}, wrong(t, in, "-cache-dir=/etc/kv"))
	good(t, in)                             // the temporary directory is the suite's own
	good(t, Inputs{}, "-cache-dir=/etc/kv") // there is no check
}

func TestAnEntryThatNeverFitsInTheFreeSpace(t *testing.T) {
	v := good(t, Inputs{Bench: bench(t, "Synthetic")}, "-division=open")
	assert.Empty(t, v.CheckFit(100*units.GiB))
	assert.Equal(t, Violations{"-storage-capacity-gb: must be at least 3.06, because one entry of " +
		"25000 tokens of llama3.1-8b takes that many GiB (a smaller -model takes less); the free " +
		"space of the temporary directory leaves room for 1"}, v.CheckFit(units.GiB))
}
