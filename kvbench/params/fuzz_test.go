package params

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzConfig holds that no file panics, that every problem names the file, and that what a file
// says without a problem makes a profile that can be used.
func FuzzConfig(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(string(text))
	}
	for _, text := range []string{"a: &a [*a]", "x: &x {<<: *x}", "decode: {<<: [*y]}", "? {}\n: 1",
		"rag: !!binary x", "\xff",
		"jobs: &j [*j, {bench: a}]", "order: in turn\ntrials: 1\njobs:\n- {bench: a, sweep: [a=1,2]}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := parseConfig("f.yaml", []byte(text))
		for _, message := range c.bad {
			require.Contains(t, message, "f.yaml:")
		}
		s := &configFile{path: "f.yaml", kind: FromScenario}
		for _, j := range s.scenario([]byte(text)).Jobs {
			require.True(t, j.Bench != "" || len(s.bad) > 0)
		}
		for _, message := range s.bad {
			require.Contains(t, message, "f.yaml:")
		}
		v := newValues("/")
		for _, p := range keys {
			for _, s := range c.values[p.name] {
				if err := p.set(v, "/", s.text); err != nil {
					require.NotEmpty(t, err.Error())
				}
			}
		}
		for _, m := range c.models {
			require.NoError(t, m.Validate())
		}
	})
}

func FuzzDevice(f *testing.F) {
	for _, text := range []string{
		"read=14GiB/s,write=7GiB/s,read-latency=80us,write-latency=20us,parallelism=128",
		"read=1,write=2,duplex=t,read-iops=3", "=,=", "read", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDevice(text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		again, err := ParseDevice(FormatDevice(d))
		require.NoError(t, err, FormatDevice(d))
		require.Equal(t, d, again)
	})
}
