package buffer

import "errors"

func adviseHuge([]byte) (reason string) {
	return "ordinary pages: macOS has no huge pages to ask for"
}

func hugeBytes([]byte) (int64, error) { return 0, nil }

func bind([]byte, []int) error { return errors.ErrUnsupported }
