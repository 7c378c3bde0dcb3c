// Package launchers reads what the launcher of a process says of it: which of how many clients it
// is, how many of them are on its host, where the first of them can be met, and by which name their
// job goes.
//
//	launchers.go   Find: one table of families of variables, in the order in which they are asked
//	slurm.go       Slurm's lists of nodes and of tasks
//
// Everything is a function of its arguments; nothing is looked up and nothing is remembered. The
// variables were read in programs that ran under Open MPI 4.1.4, MPICH 4.0.2 and Slurm 22.05; those
// of the others stand in their documentation.
package launchers
