// Package submission puts the results of an MLPerf-style run into the directory tree that a submission has, checks them
// against the closed division, and describes the system as far as it is known. It makes no result official: every page of
// the tree says that the parameters are those of MLPerf Storage and the result is not an MLPerf result.
package submission
