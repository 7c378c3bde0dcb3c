//go:build !nvml || !cgo || !linux

package discover

// nvmlGPUs says what is missing: NVML is reached through cgo, which static and cross builds do
// without.
func nvmlGPUs() ([]GPU, string) {
	return nil, "memory and link of NVIDIA cards need NVML, which this build has not: build with " +
		"CGO_ENABLED=1 go build -tags nvml ./tools/kvreport on Linux"
}
