package plainio

import (
	"fmt"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/workloads/iotrace"
)

// decide turns a row into an operation and hands it on as soon as nothing is
// before it. The caller holds a token for it.
//
// The decision falls here, in the order of the file and on metadata alone; the bytes move later
// and in another order. So two drives are asked for the same operations.
func (r *Replay) decide(b *Bench, row iotrace.Row, due time.Duration) {
	key := row.Key
	if row.Tier != int(tiers.Storage) {
		// the same entry in another tier is another one
		key = fmt.Sprintf("Tier-%d/%s", row.Tier, key)
	}
	r.mu.Lock()
	if now := b.Clock.Now(); due != clock.Never && now > due {
		r.late = max(r.late, now-due)
	}
	op := &replayOp{op: row.Operation, key: key, due: due}
	room, ok := r.plan(b, op, row.Bytes)
	if !ok {
		r.mu.Unlock()
		<-r.tokens
		return
	}
	if before := r.chain[key]; before != nil && before != op {
		op.after(before)
	}
	r.chain[key] = op
	r.left.Add(1)
	runnable := op.waits == 0
	clear := room != nil && room.waits == 0
	r.mu.Unlock()
	if clear {
		r.ready <- room
	}
	if runnable {
		r.ready <- op
	}
}

// after makes op wait for another one.
func (op *replayOp) after(before *replayOp) {
	before.next = append(before.next, op)
	op.waits++
}

// plan decides what an operation does, and what makes room for it, nil if
// nothing has to. It returns false for a row that does nothing.
//
// A write of what is there replaces it: the old entry is deleted first, because it and the new one
// may not fit beside each other.
func (r *Replay) plan(b *Bench, op *replayOp, size int64) (room *replayOp, ok bool) {
	held, there := r.lru.Peek(op.key)
	switch op.op {
	case iotrace.Read:
		switch {
		case there:
			op.object, _ = r.lru.Get(op.key)
		case r.seen.TestString(op.key):
			r.count.EvictedReads++
		default:
			r.count.UnwrittenReads++
		}
		return nil, there
	case iotrace.Delete:
		if !there {
			r.count.UnknownDeletes++
			return nil, false
		}
		r.remove(held)
		op.victims = append(op.victims, held)
		r.inLine(op)
		return nil, true
	}
	if size > r.capacity {
		r.count.TooLarge++
		return nil, false
	}
	var victims []tiers.Object
	if there {
		r.remove(held)
		victims = append(victims, held)
	}
	old := int64(len(victims))
	for r.used+size > r.capacity {
		_, v, _ := r.lru.GetOldest()
		r.remove(v)
		victims = append(victims, v)
	}
	if len(victims) > 0 {
		room = r.makeRoom(victims)
		room.old = old
	}
	if r.room != nil {
		op.after(r.room)
	}
	op.object = tiers.Object{Key: op.key, Gen: b.Gen(), Size: size}
	r.lru.Add(op.key, op.object)
	r.used += size
	r.seen.AddString(op.key)
	return room, true
}

// remove takes an entry out of what lies in the tier, as decided.
func (r *Replay) remove(o tiers.Object) {
	r.lru.Remove(o.Key)
	r.used -= o.Size
}

// makeRoom makes the deletion of victims, which waits until nobody reads or
// writes them. Deletions stand in line, and a write waits for the last one
// decided before it: so the tier never holds more than was decided.
func (r *Replay) makeRoom(victims []tiers.Object) *replayOp {
	room := &replayOp{op: iotrace.Delete, victims: victims, room: true}
	for _, v := range victims {
		if before := r.chain[v.Key]; before != nil {
			room.after(before)
		}
	}
	r.inLine(room)
	r.left.Add(1)
	return room
}

// inLine puts a deletion behind those before it.
func (r *Replay) inLine(op *replayOp) {
	if r.room != nil {
		op.after(r.room)
	}
	r.room = op
}
