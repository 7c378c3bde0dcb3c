package tiers

import "time"

// DeviceModel is a queueing model of a drive that the machine does not have.
//
// The device has Parallelism servers. A request is one chunk of an entry; every operation keeps up
// to the I/O depth of them outstanding. The request takes the first free server and waits there for
// its access latency, concurrently with the requests of the other servers. Then its bytes pass the
// medium, which all requests share in FIFO order: n bytes occupy the medium for n ÷ bandwidth of
// their direction, and with IOPS for at least 1 ÷ IOPS. Reads and writes share one medium (a drive
// that reads 14 and writes 7 GiB/s does half of each when its time is divided evenly); with Duplex
// each direction has its own. A request frees its server when its bytes have passed the medium.
//
// So one request at a time takes latency + size ÷ bandwidth. Many concurrent requests reach the
// bandwidth or the IOPS, whichever is less. Between the two, throughput grows with the number
// outstanding, up to Parallelism.
//
// A limiter in front of a faster drive (the kernel's for cgroups, the limiters of many clouds) hands
// out its bandwidth in time slices: bytes that fit into a slice pass at once when the slice begins,
// the rest waits for the next slice. With Slice a request completes at the beginning of the slice in
// which its bytes would have passed. The first slice begins with the first request after at least
// one idle slice.
//
// Flush is the time of the flush that makes an entry durable on a drive with a volatile write cache.
// It is added to the write of the entry. It neither waits for other requests nor delays them; drives
// on which it does are slower than their model.
//
// Deletions, the filesystem, the CPU and the wear of the drive cost nothing.
type DeviceModel struct {
	Read         float64
	Write        float64
	ReadIOPS     float64 // requests/s, 0 = no bound
	WriteIOPS    float64 //
	ReadLatency  time.Duration
	WriteLatency time.Duration
	Parallelism  int
	Duplex       bool
	Slice        time.Duration // 0: the medium passes requests one by one
	Flush        time.Duration // added to the write of each entry
}

// Passing returns how long a request occupies the medium: its bytes ÷ bandwidth, at least 1 ÷ IOPS.
func (m *DeviceModel) Passing(op Op, bytes int64) time.Duration {
	rate, iops := m.Read, m.ReadIOPS
	if op == Write {
		rate, iops = m.Write, m.WriteIOPS
	}
	seconds := float64(bytes) / rate
	if iops > 0 {
		seconds = max(seconds, 1/iops)
	}
	return time.Duration(seconds * float64(time.Second))
}
