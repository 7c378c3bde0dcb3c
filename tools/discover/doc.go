// Package discover describes the hardware of a machine as the kernel shows it, and recommends
// parameters, each with a reason.
//
//	hardware.go    Hardware: the description, which is also the schema of the JSON; as text, by text.tmpl
//	machine.go     Describe: processors, memory, the directory, tracing; ReadFile: the
//	               description of another machine
//	devices.go     block devices, their PCIe links and NVMe controllers; NVIDIA's GPUs on the PCI
//	               bus, and what their driver knows (package nvml)
//	recommend.go   recommended parameters and system settings
//
// The package changes no setting and measures nothing. It starts and stops a trace, because nothing
// else shows whether tracing works. An unknown value is null in the JSON and "unknown" in the text,
// never 0.
//
// All files are read below a root directory, so that tests can describe machines made of files: a server
// with two sockets, an NVMe drive in a slow slot, NVIDIA's GPUs.
//
// kvreport submission reads the JSON of each client and fills in the system description. Recommendations
// depend only on the description, so that a reader can check them against it.
package discover
