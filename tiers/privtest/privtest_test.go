package privtest

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// verdict is a testing.TB that remembers how a test was ended.
type verdict struct {
	testing.TB
	skipped, failed string
}

func (v *verdict) Helper() {}
func (v *verdict) Skipf(format string, args ...any) {
	v.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
func (v *verdict) Fatalf(format string, args ...any) {
	v.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func judge(f func(t testing.TB)) *verdict {
	v := new(verdict)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(v)
	}()
	<-done
	return v
}

func TestNeed(t *testing.T) {
	reason := errors.New("no loop devices in this sandbox")
	t.Setenv(RequireEnv, "")
	assert.Equal(t, &verdict{}, judge(func(t testing.TB) { Need(t, nil) }))
	v := judge(func(t testing.TB) { Need(t, reason) })
	assert.Contains(t, v.skipped, reason.Error())
	assert.Empty(t, v.failed)

	t.Setenv(RequireEnv, "1")
	v = judge(func(t testing.TB) { Need(t, reason) })
	assert.Contains(t, v.failed, reason.Error(), "a skip that must not happen is a failure")
	assert.Empty(t, v.skipped)
	assert.Equal(t, &verdict{}, judge(func(t testing.TB) { Need(t, nil) }))
}
