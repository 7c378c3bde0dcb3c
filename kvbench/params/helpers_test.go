package params

import (
	"flag"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// typed parses arguments as TestMain does.
func typed(t testing.TB, args ...string) *Set {
	t.Helper()
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	s := Register(fs)
	require.NoError(t, fs.Parse(args))
	return s
}

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func bench(t testing.TB, name string) Bench {
	t.Helper()
	b, ok := Benchmark(name)
	require.True(t, ok, name)
	return b
}

// good resolves what must be right.
func good(t testing.TB, in Inputs, args ...string) *Values {
	t.Helper()
	if in.Base == "" {
		in.Base = "/base"
	}
	v, err := typed(t, args...).Resolve(in)
	require.NoError(t, err)
	return v
}
