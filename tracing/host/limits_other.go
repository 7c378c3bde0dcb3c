//go:build !linux && !darwin

package host

func allowedCPUs() int { return 0 }

func physicalMemory() (bytes int64, source string) { return 0, "" }
