package workloads
