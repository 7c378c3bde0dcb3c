package benchmarks

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestASecondSignalIsAnotherOne(t *testing.T) {
	for _, c := range []struct {
		what   string
		second syscall.Signal
		after  time.Duration
		ends   syscall.Signal
	}{
		{"pressed twice", syscall.SIGINT, echo, syscall.SIGINT},
		{"sent twice, as timeout(1) does", syscall.SIGINT, 0, syscall.SIGQUIT},
		{"another one at once", syscall.SIGTERM, 0, syscall.SIGTERM},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := make(chan os.Signal, 2)
			var calls []string
			ends := make(chan syscall.Signal, 1)
			go func() {
				ends <- twoSignals(got,
					func(s syscall.Signal) { calls = append(calls, s.String()) },
					func() { calls = append(calls, "last words") })
			}()
			got <- syscall.SIGINT
			synctest.Wait()
			<-time.After(c.after)
			got <- c.second
			<-time.After(time.Hour)
			got <- syscall.SIGQUIT
			assert.Equal(t, c.ends, <-ends, c.what)
			assert.Equal(t, []string{syscall.SIGINT.String(), "last words"}, calls)
		})
	}
}
