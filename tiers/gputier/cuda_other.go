//go:build !cgo || !linux

package gputier

import (
	"errors"
	"fmt"
)

func count() (int, error) {
	return 0, fmt.Errorf("this build cannot use a card, because it was built without cgo, as static "+
		"builds are, or not for Linux: build with CGO_ENABLED=1 and a C compiler, and run with the NVIDIA "+
		"driver: %w", errors.ErrUnsupported)
}

func open(int) (device, error) {
	_, err := count()
	return nil, err
}
