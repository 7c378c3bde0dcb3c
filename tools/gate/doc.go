// Package gate decides whether new benchmark results are worse than old ones by more than is
// allowed, and says so only when the samples can carry the claim: an alarm needs both a significant
// difference (Mann-Whitney test, Holm's correction over everything that is gated) and a median that
// is worse by more than the metric's threshold.
package gate
