package transfer

import (
	"cmp"
	"sync/atomic"
	"time"

	"kvbench/tiers"
)

// stream moves chunks through one buffer until no chunk remains. It is a state machine, not a goroutine.
// When a stream has to wait, run returns. Two events end a wait and call run again: the completion of the
// stream's request, and, if Depth requests were in flight, the end of another stream's request. So a chain
// of requests needs no waiting goroutine and no wake-up. A wake-up would cost as much CPU time as a small
// request.
type stream struct {
	op        *operation
	buf       tiers.Buffer
	io        tiers.IO // the request that moves the current chunk
	step      step
	calls     atomic.Int32  // 1 after the return of Submit or the call of Done, 2 after both
	submitted time.Duration // the time of Submit
	place     int           // the index of the range from which the stream takes chunks
}

// extentRange is a range of the extent. Streams take its chunks from front to back.
type extentRange struct {
	next int64 // the offset of the next chunk
	end  int64
}

// split divides the extent into n ranges of whole chunks. The last chunk of the extent may be shorter.
func (op *operation) split(n int) {
	op.ranges = op.single[:]
	if n > 1 {
		op.ranges = make([]extentRange, n)
	}
	chunks := (op.size-1)/op.chunk + 1 // no overflow: a tier without bytes has huge chunks
	for i := range op.ranges {
		from, to := chunks*int64(i)/int64(n), chunks*int64(i+1)/int64(n)
		op.ranges[i] = extentRange{from * op.chunk, min(to*op.chunk, op.size)}
	}
}

// step is the next step of a stream.
type step uint8

const (
	take   step = iota // take the next chunk
	enter              // enter the tier
	submit             // submit the request: the stream has entered the tier
	finish             // process the completed request
)

// run advances the stream until it has to wait or ends.
func (l *stream) run() {
	waits, err := l.advance()
	if waits {
		return
	}
	if l.step == submit || l.step == finish { // the operation has stopped, or Submit has panicked
		l.op.exit()
	}
	l.op.end(l, err)
}

// advance makes the steps of the stream. It returns true if the stream has to wait, and false if the
// stream has ended.
func (l *stream) advance() (waits bool, err error) {
	defer recoverInto(&err)
	op := l.op
	for {
		switch l.step {
		case take:
			if !op.take(l) {
				return false, nil
			}
			l.step = enter
			if err := op.generate(l); err != nil {
				return false, err
			}
		case enter:
			l.step = submit
			if !op.letIn(l) {
				return true, nil
			}
		case submit:
			op.mu.Lock()
			stopped := op.stopped()
			op.mu.Unlock()
			if stopped {
				return false, nil
			}
			// Both the return of Submit and the call of Done add 1 to calls. The goroutine that makes
			// it 2 continues the stream, so that exactly one goroutine does. If Submit itself calls
			// Done, this loop continues: the stack does not grow with every chunk.
			l.step = finish
			l.calls.Store(0)
			l.io.Begun, l.io.Ended, l.io.Passed, l.submitted = 0, 0, 0, op.Settings.Clock.Now()
			op.to.Submit(&l.io)
			if l.calls.Add(1) < 2 {
				return true, nil
			}
		case finish:
			l.step = take
			if err := op.finish(l); err != nil {
				return false, err
			}
		}
	}
}

// take gives the stream the next chunk of its range or, at the end of the range, of another range. It
// returns false if no chunk remains or the operation has stopped. The chunks of a range are taken in order,
// so that the device receives sequential requests.
func (op *operation) take(l *stream) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	for range op.ranges {
		r := &op.ranges[l.place]
		if n := min(op.chunk, r.end-r.next); n > 0 {
			if op.stopped() {
				return false
			}
			l.io.Off, l.io.N = r.next, int(n)
			r.next += n
			if l.buf.B != nil {
				l.io.Buf = l.buf
				l.io.Buf.B = l.buf.B[:n]
			}
			return true
		}
		l.place = (l.place + 1) % len(op.ranges)
	}
	return false
}

// letIn lets the stream enter the tier, or makes the stream wait if Depth requests are in the tier. After
// a failure the stream does not wait, because the requests in the tier may never complete.
func (op *operation) letIn(l *stream) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.inside >= op.Settings.Depth && !op.stopped() {
		op.waiting = l
		return false
	}
	op.enter()
	return true
}

// generate fills the buffer of a write with the chunk and its padding. The padding is written too. So it
// must not contain what an earlier chunk left in the buffer.
func (op *operation) generate(l *stream) error {
	if op.op == tiers.Read || l.buf.B == nil {
		return nil
	}
	end := l.io.Off + tiers.AlignUp(int64(l.io.N), int64(op.traits.Align))
	p := l.buf.B[:end-l.io.Off]
	return op.each(l.io.Off, end, true, func(o tiers.Object, inObject, inRange, n int64) error {
		return op.src.Fill(o, inObject, p[inRange:inRange+n])
	})
}

// finish processes a completed request.
func (op *operation) finish(l *stream) error {
	if l.io.Err != nil {
		return l.io.Err
	}
	op.report(l)
	if op.op == tiers.Write || l.buf.B == nil {
		return nil
	}
	p, from := l.buf.B[:l.io.N], l.io.Off
	return op.each(from, from+int64(len(p)), false, func(o tiers.Object, inObject, inRange, n int64) error {
		return op.dst.Take(o, inObject, p[inRange:inRange+n])
	})
}

// completed is the Done of the request. It continues the stream, unless Submit has not returned yet: then
// advance continues it after the return.
func (l *stream) completed(*tiers.IO) {
	l.op.exit()
	if l.calls.Add(1) == 2 {
		l.run()
	}
}

// report reports the bytes that a request moved. The lock ensures that the operation reports nothing after
// it has returned.
func (op *operation) report(l *stream) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.done || op.call.Observe == nil {
		return
	}
	c := chunk(op.op, &l.io, l.submitted, op.Settings.Clock.Now())
	c.Part = op.part
	if op.op == tiers.Read || !op.traits.CountsAtCommit {
		c.Memory = int64(l.io.Memory)
		c.Bytes = op.payload(l.io.Off, l.io.Off+int64(l.io.N)) - c.Memory
	}
	op.call.Observe(c)
}

// chunk returns the Chunk of a request that was submitted at one time and done at another.
func chunk(op tiers.Op, io *tiers.IO, submitted, done time.Duration) tiers.Chunk {
	passed := max(io.Passed, submitted)
	return tiers.Chunk{Op: op, Begun: cmp.Or(io.Begun, submitted), Ended: cmp.Or(io.Ended, done),
		Submitted: passed, Completed: done, Held: passed - submitted}
}

// end ends a stream, with an error if the stream failed, and returns its buffer to the pool. If a request
// hangs, that may be long after the operation has returned: until then the tier owns the buffer. The end
// of the last stream ends the wait of the operation.
func (op *operation) end(l *stream, err error) {
	if l.buf.B != nil {
		op.Settings.Pool.Put(l.buf)
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	op.fail(err)
	if op.running--; op.running == 0 && op.over != nil {
		op.over.Fire()
	}
}
