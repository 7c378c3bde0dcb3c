package workloads

import "strconv"

// Every entry has one stable text key. Traces print it; file names and contents derive from it, so
// that a key once written never changes its form. There is one per request or block: fmt would take
// four times as long.

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

// ChunkKey is the key of a chunk of a document: rag/<document>/<chunk>.
func ChunkKey(doc, chunk int) string { return "rag/" + strconv.Itoa(doc) + "/" + strconv.Itoa(chunk) }

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
