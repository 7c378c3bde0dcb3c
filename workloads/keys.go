package workloads

import "strconv"

// Every entry has one stable text key. Traces print it; file names and contents derive from it, so
// that a key once written never changes its form.

// UserKey is the key of a user's turn: u<user>/c<conversation>/t<turn>.
func UserKey(user, conversation, turn int) string {
	k := make(key, 0, 64)
	return string(k.int("u", int64(user)).int("/c", int64(conversation)).int("/t", int64(turn)))
}

// RequestKey is the key of a trace's request: req/<source>/<row>.<cycle>.
func RequestKey(source string, row int64, cycle int) string {
	k := append(make(key, 0, 96), "req/"...)
	return string(append(k, source...).int("/", row).int(".", int64(cycle)))
}

// ConversationKey is the key of a turn of a recorded conversation:
// sg/<conversation>.<cycle>/t<turn>.
func ConversationKey(conversation int64, cycle, turn int) string {
	k := make(key, 0, 64)
	return string(k.int("sg/", conversation).int(".", int64(cycle)).int("/t", int64(turn)))
}

// BlockKey is the key of a content-addressed block: blk/<scope>/<id>.
func BlockKey(scope string, id int64) string {
	k := append(make(key, 0, 96), "blk/"...)
	return string(append(k, scope...).int("/", id))
}

// ChunkKey is the key of a chunk of a document: rag/<document>/<chunk>.
func ChunkKey(doc, chunk int) string {
	return string(make(key, 0, 64).int("rag/", int64(doc)).int("/", int64(chunk)))
}

// SystemKey is the key of a common system prompt.
func SystemKey(n int) string {
	if n >= 0 && n < len(systemKeys) {
		return systemKeys[n]
	}
	return "system/" + strconv.Itoa(n)
}

// systemKeys spares an allocation per request with one of the first prompts.
var systemKeys = [...]string{"system/0", "system/1", "system/2", "system/3", "system/4", "system/5"}

// PopulationKey is the key of an entry written before a decode-only load.
func PopulationKey(n int) string { return "pop/" + strconv.Itoa(n) }

// PreconditionKey is the key of an entry written to precondition the storage.
func PreconditionKey(n int) string { return "pre/" + strconv.Itoa(n) }

// key is one in the making. There is one per request or block; fmt would take four times as long.
type key []byte

// int appends a text and a number.
func (k key) int(before string, n int64) key {
	return strconv.AppendInt(append(k, before...), n, 10)
}
