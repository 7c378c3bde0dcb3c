package kvbench
