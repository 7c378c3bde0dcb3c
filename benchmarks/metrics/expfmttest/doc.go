// Package expfmttest lets Prometheus' own parser read what package metrics writes: the golden files
// of its tests. It is a module of its own, so that users of kvbench download and build none of it.
package expfmttest
