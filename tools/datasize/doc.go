// Package datasize tells what memory and disk a run will need, before anything is run.
package datasize
