package benchmarks

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	code := Main(m)
	removeBuilt()
	os.Exit(code)
}
