package workloads

import "strconv"

// Every entry has one stable text key. Traces print it; file names and contents derive from it.

// UserKey is the key of a user's turn: u<user>/c<conversation>/t<turn>.
func UserKey(user, conversation, turn int) string {
	var space [64]byte
	b := append(space[:0], 'u')
	b = strconv.AppendInt(b, int64(user), 10)
	b = append(b, "/c"...)
	b = strconv.AppendInt(b, int64(conversation), 10)
	b = append(b, "/t"...)
	b = strconv.AppendInt(b, int64(turn), 10)
	return string(b)
}

// RequestKey is the key of a trace's request: req/<source>/<row>.<cycle>.
func RequestKey(source string, row int64, cycle int) string {
	var space [96]byte
	b := append(space[:0], "req/"...)
	b = append(b, source...)
	b = append(b, '/')
	b = strconv.AppendInt(b, row, 10)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(cycle), 10)
	return string(b)
}

// ConversationKey is the key of a turn of a recorded conversation:
// sg/<conversation>.<cycle>/t<turn>.
func ConversationKey(conversation int64, cycle, turn int) string {
	var space [64]byte
	b := append(space[:0], "sg/"...)
	b = strconv.AppendInt(b, conversation, 10)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(cycle), 10)
	b = append(b, "/t"...)
	return string(strconv.AppendInt(b, int64(turn), 10))
}

// BlockKey is the key of a content-addressed block: blk/<scope>/<id>.
func BlockKey(scope string, id int64) string {
	var space [96]byte
	b := append(space[:0], "blk/"...)
	b = append(b, scope...)
	b = append(b, '/')
	return string(strconv.AppendInt(b, id, 10))
}

// SystemKey is the key of a common system prompt.
func SystemKey(n int) string {
	if n >= 0 && n < len(systemKeys) {
		return systemKeys[n]
	}
	return "system/" + strconv.Itoa(n)
}

// systemKeys spares an allocation per request with one of the first prompts.
var systemKeys = [...]string{"system/0", "system/1", "system/2", "system/3", "system/4", "system/5", "system/6", "system/7"}

// PopulationKey is the key of an entry written before a decode-only load.
func PopulationKey(n int) string { return "pop/" + strconv.Itoa(n) }

// PreconditionKey is the key of an entry written to precondition the storage.
func PreconditionKey(n int) string { return "pre/" + strconv.Itoa(n) }

// ChunkKey is the key of a chunk of a document: rag/<document>/<chunk>.
func ChunkKey(doc, chunk int) string { return "rag/" + strconv.Itoa(doc) + "/" + strconv.Itoa(chunk) }
