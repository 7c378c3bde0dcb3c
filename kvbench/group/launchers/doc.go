// Package launchers reads the environment variables that a launcher (mpirun, srun, torchrun …) sets for
// a process. They hold the rank of the process, the number of ranks, the number of ranks on this host,
// the host of rank 0, and the name of the job.
//
//	launchers.go   Find: the table of launchers and their variables, in the order in which it tries them
//	slurm.go       Slurm's lists of nodes and of tasks
//
// Everything is a function of its arguments. The names were checked in programs that ran under Open MPI
// 4.1.4, MPICH 4.0.2 and Slurm 22.05. Those of the other launchers are from their documentation.
package launchers
