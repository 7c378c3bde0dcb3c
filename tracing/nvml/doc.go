// Package nvml describes NVIDIA cards, as their driver knows them.
//
//	nvml.go           Card
//	library_linux.go  the driver's library NVML, which builds with cgo load when they use it
//	program_other.go  other builds, such as static ones: the program nvidia-smi, which knows less
package nvml
