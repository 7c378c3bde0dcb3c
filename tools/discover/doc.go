// Package discover describes the machine that a benchmark is to run on, as the kernel shows it, and
// recommends parameters with the reason for each.
//
//	hardware.go    Hardware, what is found: the schema of the JSON
//	machine.go     Describe: processors, memory, the directory, what tracing would need; what
//	               another machine wrote
//	devices.go     block devices, their PCIe links and NVMe controllers; NVIDIA's GPUs on the PCI
//	               bus, and their memory by nvidia-smi
//	recommend.go   parameters and settings of the system, each with its reason
//	text.go        all of it for machines and, by text.tmpl, for people
//
// It changes nothing and measures nothing: a machine is described in the state in which the next
// run finds it. It begins and ends a trace, because no other check shows whether tracing works.
// Unknown values are null in the JSON and "unknown" in the text, never 0: an empty slot and an
// unreadable link are different things.
//
// Every file is read below a root, so that tests describe machines made of files: a server with two
// sockets, an NVMe drive in a slot that is too slow, NVIDIA's cards.
//
// The JSON of one machine is read on another: kvreport submission fills the description of a system
// from it, a file for each client. Advice is made from the description alone, so that it can be
// checked against it.
package discover
