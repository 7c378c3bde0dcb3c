package kvbench

import (
	"fmt"

	"kvbench/tiers"
	"kvbench/workloads"
)

// histKind says what a histogram of the Recorder holds.
type histKind uint8

const (
	histIO         histKind = iota // by level and operation: device + host
	histDevice                     // by level and operation, demotion writes included
	histHost                       // by level and operation
	histNormal                     // by level and operation: IO per 100 MiB
	histRate                       // by level and operation: bytes per second of IO of one entry
	histSize                       // by level and operation: entry bytes
	histBySize                     // by level, operation and size class: IO
	histDemotion                   // by level and operation: IO of a demotion's half
	histFirst                      // by level: IO of the first read of an entry
	histReread                     // by level: IO of the reads after it
	histPrefix                     // IO of prefix reads
	histAdmission                  // by operation
	histSpace                      // of those that waited
	histPending                    // of those that waited
	histGenerate                   // data generation per write
	histDelete                     // by level
	histQueue                      // per request, as all below
	histStorage                    //
	histPrefill                    //
	histDecode                     //
	histGeneration                 // sleep for tokens
	histEndToEnd                   //
	histClass                      // by class: end to end
)

// normalBytes is the size to which latencies are scaled.
const normalBytes = 100 << 20

// histID names one histogram of the Recorder; fields that its kind does not use are 0.
type histID struct {
	kind  histKind
	level tiers.Level
	op    tiers.Op
	class uint8 // size class or request class
}

func (id histID) of(k histKind) histID { id.kind = k; return id }

func (id histID) unit() Unit {
	switch id.kind {
	case histSize:
		return Bytes
	case histRate:
		return BytesPerSec
	}
	return Nanoseconds
}

// name is the key of the histogram in the result's "histograms".
func (id histID) name() string {
	levelOp := fmt.Sprintf("%s_%s", id.level, id.op)
	switch id.kind {
	case histIO:
		return levelOp
	case histDevice:
		return levelOp + "_device"
	case histHost:
		return levelOp + "_host"
	case histNormal:
		return levelOp + "_per_100mib"
	case histRate:
		return levelOp + "_rate"
	case histSize:
		return levelOp + "_size"
	case histBySize:
		return fmt.Sprintf("%s_size_class_%d", levelOp, id.class)
	case histDemotion:
		return levelOp + "_demotion"
	case histFirst:
		return id.level.String() + "_first_read"
	case histReread:
		return id.level.String() + "_reread"
	case histPrefix:
		return "prefix_read"
	case histAdmission:
		return id.op.String() + "_admission"
	case histSpace:
		return "space_wait"
	case histPending:
		return "pending_wait"
	case histGenerate:
		return "data_generation"
	case histDelete:
		return id.level.String() + "_delete"
	case histQueue:
		return "request_queue"
	case histStorage:
		return "request_storage"
	case histPrefill:
		return "request_prefill"
	case histDecode:
		return "request_decode"
	case histGeneration:
		return "request_generation"
	case histEndToEnd:
		return "request_end_to_end"
	case histClass:
		return "request_end_to_end_" + workloads.Class(id.class).String()
	}
	return fmt.Sprintf("histogram_%d", id.kind)
}
