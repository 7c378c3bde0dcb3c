package gputier

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/memtier"
)

// Card describes a card.
type Card struct {
	Name    string
	Address string // on the PCI bus, as sysfs writes it: 0000:81:00.0
	CUDA    string // the newest version that the driver supports, such as 13.0
	Bytes   int64  // its memory
	Free    int64  // free before this process took some
}

// device is a card with this process's context. Its methods are safe for concurrent use.
type device interface {
	card() (Card, error)
	allocate(bytes int64) error
	copy(op tiers.Op, off int64, b []byte) error // to or from the allocated memory
	register(b []byte) error
	unregister(b []byte) error
	close() error // frees the memory and releases the context
}

// Cards returns the cards of this machine, as they are at its first call: it takes some 100 ms per card. The
// error says what is missing, and the cure.
var Cards = sync.OnceValues(func() (list []Card, err error) {
	n, err := count()
	for i := range n {
		c, err := describe(i)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, err
})

// describe opens a card and closes it again.
func describe(i int) (Card, error) {
	d, err := open(i)
	if err != nil {
		return Card{}, err
	}
	c, err := d.card()
	return c, errors.Join(err, d.close())
}

// Tier is a gpu tier.
type Tier struct {
	*memtier.Tier
	memory memory
}

// New takes the same memory of each of the first cards of this machine.
func New(cards int, bytes int64) (t *Tier, err error) {
	list, err := Cards()
	if err != nil {
		return nil, err
	}
	if cards > len(list) {
		return nil, fmt.Errorf("use %d cards (-num-gpus): this machine has %d", cards, len(list))
	}
	t = &Tier{memory: memory{bytes: bytes}}
	for i := range cards {
		d, err := open(i)
		if err == nil {
			t.memory.devices = append(t.memory.devices, d)
			err = d.allocate(bytes)
		}
		if err != nil {
			return nil, errors.Join(err, t.memory.Close())
		}
	}
	text := list[0].Name
	if cards > 1 {
		text = fmt.Sprintf("%d × %s", cards, text)
	}
	t.Tier = memtier.Over(&t.memory, cards, bytes, tiers.GPU,
		text+", CUDA "+list[0].CUDA)
	return t, nil
}

// Cards returns the cards of the tier.
func (t *Tier) Cards() []Card {
	list, _ := Cards() // New has seen them
	return list[:len(t.memory.devices)]
}

// memory is the memory of cards, the same of each.
type memory struct {
	devices []device
	bytes   int64
}

func (m *memory) Copy(op tiers.Op, off int64, b []byte) error {
	return m.devices[off/m.bytes].copy(op, off%m.bytes, b)
}

func (m *memory) Close() (err error) {
	for _, d := range m.devices {
		err = errors.Join(err, d.close())
	}
	return err
}

// Pins returns a registrar of one arena: the driver then copies to and from it without a copy of its own.
func (t *Tier) Pins() buffer.Registrar { return &pins{device: t.memory.devices[0]} }

type pins struct {
	device device
	arena  []byte
}

// Register returns the slot 0, which no I/O engine has.
func (p *pins) Register(arena []byte) (slot int32, err error) {
	p.arena = arena
	return 0, p.device.register(arena)
}

func (p *pins) Unregister(int32) { _ = p.device.unregister(p.arena) }

// The copies that CopyRates measures, in each direction.
const (
	plainBytes = 64 << 20
	plainTime  = 50 * time.Millisecond
)

// CopyRates measures what plain copies between each card and registered memory reach, in bytes/s. Call it
// before the first entry: it writes into the tier's memory.
func (t *Tier) CopyRates() (rates [][tiers.NumOps]float64, err error) {
	arena, err := buffer.NewArena(min(plainBytes, t.memory.bytes))
	if err != nil {
		return nil, err
	}
	plain := arena.Bytes()
	buffer.Touch(plain)
	pins := t.Pins()
	_, _ = pins.Register(plain) // NewPool of the run reports the error
	for _, d := range t.memory.devices {
		err = errors.Join(err, d.copy(tiers.Write, 0, plain)) // the first copy takes longer
		var rate [tiers.NumOps]float64
		for op := range rate {
			from, moved := time.Now(), 0
			for err == nil && time.Since(from) < plainTime {
				err = d.copy(tiers.Op(op), 0, plain)
				moved += len(plain)
			}
			rate[op] = float64(moved) / time.Since(from).Seconds()
		}
		rates = append(rates, rate)
	}
	pins.Unregister(0)
	return rates, errors.Join(err, arena.Close())
}
