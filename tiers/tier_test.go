package tiers_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

func TestNamesAreThoseOfTracesAndFlags(t *testing.T) {
	assert.Equal(t, "gpu cpu storage", fmt.Sprint(tiers.GPU, " ", tiers.CPU, " ", tiers.Storage))
	assert.Equal(t, "read write", fmt.Sprint(tiers.Read, " ", tiers.Write))
	assert.Equal(t, "Prefill Decode Evict",
		fmt.Sprint(tiers.Prefill, " ", tiers.Decode, " ", tiers.Evict))
}

func TestErrorsNamePlaceKeyOffsetAndCure(t *testing.T) {
	err := error(&tiers.OpError{Op: "write", Path: "/mnt/x/ab/cd", Key: "u1/c1/t1", Offset: 4096,
		Err: unix.ENOSPC})
	assert.ErrorIs(t, err, unix.ENOSPC)
	assert.EqualError(t, err,
		"write /mnt/x/ab/cd (entry u1/c1/t1 at offset 4096): no space left on device; free space "+
			"there or have less there (-storage-capacity-gb; of checkpoints -checkpoint-keep)")
	for _, errno := range []unix.Errno{unix.EROFS, unix.EACCES, unix.EMFILE, unix.EIO} {
		assert.Contains(t, (&tiers.OpError{Op: "create", Err: errno}).Error(), "; ")
	}
	unsupported := error(&tiers.UnsupportedError{Feature: "direct I/O", Need: "a disk",
		Reason: "there is none"})
	assert.EqualError(t, unsupported,
		"direct I/O is not supported here: there is none; it needs a disk")
}

// A hybrid model's first groups are read from all objects; groups with windows and states are read
// from the last objects only.
func TestTails(t *testing.T) {
	assert.EqualValues(t, 100, tiers.Tails(nil).Of(100, 7))
	tails := tiers.Tails{0, 3, 1}
	var read []int64
	for n := 5; n > 0; n-- {
		read = append(read, tails.Of(3*4096+1, n))
	}
	assert.Equal(t, []int64{4096, 4096, 2 * 4096, 2 * 4096, 3*4096 + 1}, read)
	assert.EqualValues(t, 50, tiers.Tails{2, 1}.Of(100, 9), "at least the first part is read")
}
