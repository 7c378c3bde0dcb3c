//go:build linux && (amd64 || arm64)

package tracing

func (k *kernelProbes) clearCalls() error         { return nil }
func (k *kernelProbes) readCalls(n *counts) error { return nil }
