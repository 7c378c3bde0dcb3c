// Package launchers reads the variables that a launcher sets for a process: which of how many
// clients it is, how many of them are on its host, the host of the first, and the name of their
// job.
//
//	launchers.go   Find: one table of families of variables, in the order in which they are tried
//	slurm.go       Slurm's lists of nodes and of tasks
//
// Everything is a function of its arguments. The variables were read in programs that ran under
// Open MPI 4.1.4, MPICH 4.0.2 and Slurm 22.05; those of the others are in their documentation.
package launchers
