package workloads

import (
	"strconv"
	"time"
)

// Request is one request to the model. The caller that takes it owns it, except the elements of
// History: later requests of the conversation share them. They must not be changed.
type Request struct {
	User    int   // -1 in a trace, which has no users
	Seq     int64 // number of the request of its user (of the trace), from 0
	Class   Class
	Arrival time.Duration // intended start, since the load's origin

	// Conversation and Turn count from 1 within the user. In a trace the conversation is the Seq of
	// its first request.
	Conversation, Turn int
	Kind               Kind
	ContextTokens      int // tokens of the whole context, including the prefix
	GenerateTokens     int // as drawn or recorded, for every kind of request

	SystemPrompt       int   // index of its common prompt, -1 for none
	SystemPromptTokens int   // 0 for none
	Own                Entry // the context without the prefix, at least one token
	History            []Entry

	// Retrieved are the chunks of a document that the request reads before it decodes. A Query only
	// reads and decodes them.
	Retrieved []Entry
	Query     bool

	// Blocks are the blocks of a request of a block trace, nil for another request. The Own entry then
	// has the tokens of the blocks and no key. IdealBlocks is the number of first Blocks that a cache
	// without limit would have, -1 if it is unknown.
	Blocks      []Entry
	IdealBlocks int

	// Origin belongs to the Source that made the request. It refers to the Source's own state.
	Origin any
}

// OfBlocks reports whether this is a request of a block trace. Such a request may be too short to have
// blocks.
func (r *Request) OfBlocks() bool { return r.Blocks != nil }

// pieces returns the pieces of the prompt in order. A decode-only request has one piece, which another
// request has computed.
func (r *Request) pieces() []Entry {
	if r.Kind == DecodeOnly {
		return []Entry{r.Own}
	}
	list := make([]Entry, 0, len(r.History)+2)
	if r.SystemPrompt >= 0 {
		list = append(list, Entry{SystemKey(r.SystemPrompt), r.SystemPromptTokens})
	}
	return append(append(list, r.History...), r.Own)
}

// PromptTokens returns the tokens of the prompt without retrieved chunks.
func (r *Request) PromptTokens() (tokens int) {
	if r.OfBlocks() {
		return r.ContextTokens
	}
	for _, piece := range r.pieces() {
		tokens += piece.Tokens
	}
	return tokens
}

// Entry names a cached object by its key and its length in tokens.
type Entry struct {
	Key    string
	Tokens int
}

// MaxTokens is the largest number of tokens of one request. It is a thousand times the largest context
// window of today's models. Its product with maxBytesPerToken fits into 64 bits.
const MaxTokens = 1 << 30

// Kind says which phases a request has.
type Kind uint8

// The kinds of requests.
const (
	PrefillDecode Kind = iota
	PrefillOnly
	DecodeOnly
)

// String returns the name that reports use.
func (k Kind) String() string {
	return [...]string{"prefill-decode", "prefill-only", "decode-only"}[k]
}

// Class is the quality of service of a request. By default a larger class is more urgent; QoS.Priority
// decides.
type Class uint8

// The classes, from patient to urgent.
const (
	Batch Class = iota
	Responsive
	Interactive
	NumClasses = 3
)

// String returns the name that configuration files and results use.
func (c Class) String() string { return [...]string{"batch", "responsive", "interactive"}[c] }

// QoS is the service level of a class: the latencies that 95 %, 99 %, 99.9 % and 99.99 % of its
// requests must not exceed, and its priority in the queue (larger numbers first).
type QoS struct {
	P95, P99, P999, P9999 time.Duration
	Priority              int
}

// Every entry has one stable text key. Traces print it, and file names and contents derive from it, so
// the format of keys never changes. Each request or block needs a key, so the functions do not use fmt,
// which takes four times as long.

// UserKey is the key of a user's turn: u<user>/c<conversation>/t<turn>.
func UserKey(user, conversation, turn int) string {
	return "u" + strconv.Itoa(user) + "/c" + strconv.Itoa(conversation) + "/t" + strconv.Itoa(turn)
}

// RequestKey is the key of a trace's request: req/<source>/<row>.<cycle>.
func RequestKey(source string, row int64, cycle int) string {
	return "req/" + source + "/" + strconv.FormatInt(row, 10) + "." + strconv.Itoa(cycle)
}

// ConversationKey is the key of a turn of a recorded conversation:
// sg/<conversation>.<cycle>/t<turn>.
func ConversationKey(conversation int64, cycle, turn int) string {
	return "sg/" + strconv.FormatInt(conversation, 10) + "." + strconv.Itoa(cycle) +
		"/t" + strconv.Itoa(turn)
}

// BlockKey is the key of a content-addressed block: blk/<scope>/<id>.
func BlockKey(scope string, id int64) string {
	return "blk/" + scope + "/" + strconv.FormatInt(id, 10)
}

// PartKey is the key of object n of an entry that is cut into objects: <key>#<n>.
func PartKey(key string, n int) string { return key + "#" + strconv.Itoa(n) }

// GroupKey is the key of an object of several blocks: blk/<scope>/<id>+<id>+...
func GroupKey(scope string, ids []int64) string {
	b := append(make([]byte, 0, 8*len(ids)+len(scope)+8), "blk/"+scope+"/"...)
	for i, id := range ids {
		if i > 0 {
			b = append(b, '+')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return string(b)
}

// ChunkKey is the key of a chunk of a document: rag/<document>/<chunk>.
func ChunkKey(doc, chunk int) string {
	return "rag/" + strconv.Itoa(doc) + "/" + strconv.Itoa(chunk)
}

// SystemKey is the key of a common system prompt.
func SystemKey(n int) string {
	if n >= 0 && n < len(systemKeys) {
		return systemKeys[n]
	}
	return "system/" + strconv.Itoa(n)
}

// systemKeys has the keys of the first prompts, so that a request with one of them allocates nothing.
var systemKeys = [...]string{"system/0", "system/1", "system/2", "system/3", "system/4", "system/5"}

// Before a decode-only load, PopulationPerUser entries of PopulationTokens tokens are written for each
// user. Each request reads one of them at random.
const (
	PopulationPerUser = 10
	PopulationTokens  = 2048
)

// PopulationKey is the key of an entry written before a decode-only load.
func PopulationKey(n int) string { return "pop/" + strconv.Itoa(n) }

// PreconditionKey is the key of an entry written to precondition the storage.
func PreconditionKey(n int) string { return "pre/" + strconv.Itoa(n) }
