package merge

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// The merge tag of a field is the rule by which the ranks' values are merged:
//
//	sum       the sum; null if one value is null. Lists are added entry by entry, up to the
//	          length of the shortest
//	max min   the largest, the smallest of the values that are not null
//	same      the value, if all ranks have the same; else absent
//	list      the concatenation, without duplicates
//	key=A,B   a list: entries that are equal in these fields are merged
//	drop      the value, if there is one rank; else absent
//	any       the merged structure, or the sum, of the ranks that have a value
//	-         not merged by tag, but derived from other fields or merged by its own function
//
// Structures without a tag are merged field by field. They are absent if one rank has none. Maps
// are merged key by key. Counts of a rank's window (operations, bytes, requests, CPU time, waits)
// are added. Rates are added, too, because ranks run concurrently; MLPerf Storage's launcher adds
// bandwidths and token rates the same way (mlpstorage_py/benchmarks/kvcache.py). For a memory peak
// or an age the maximum counts. A share of a window or of a machine's time can be neither added nor
// maximized.

// merged returns a new structure that merges parts.
func merged[T any](parts []*T) *T {
	out, from := new(T), make([]reflect.Value, len(parts))
	for i, part := range parts {
		from[i] = reflect.ValueOf(part).Elem()
	}
	fields(reflect.ValueOf(out).Elem(), from)
	return out
}

// fields merges structures field by field.
func fields(to reflect.Value, from []reflect.Value) {
	for i := range to.NumField() {
		values := make([]reflect.Value, len(from))
		for k := range from {
			values[k] = from[k].Field(i)
		}
		merge(to.Type().Field(i).Tag.Get("merge"), to.Field(i), values)
	}
}

// merge sets to to the merged values of a field. rule is its merge tag.
func merge(rule string, to reflect.Value, from []reflect.Value) {
	keys, byKeys := strings.CutPrefix(rule, "key=")
	switch {
	case rule == "-":
	case rule == "drop", rule == "same":
		if len(from) == 1 || rule == "same" && alike(from) {
			to.Set(from[0])
		}
	case to.Kind() == reflect.Slice && rule == "sum":
		elements(to, from)
	case byKeys, rule == "list":
		if !from[0].IsNil() {
			to.Set(reflect.MakeSlice(to.Type(), 0, from[0].Len()))
		}
		if byKeys {
			entries(keys, to, from)
			return
		}
		for _, list := range from {
			for i := range list.Len() {
				if !contains(to, list.Index(i)) {
					to.Set(reflect.Append(to, list.Index(i)))
				}
			}
		}
	case to.Kind() == reflect.Struct:
		fields(to, from)
	case to.Kind() == reflect.Map:
		each(rule, to, from)
	case to.Kind() == reflect.Pointer:
		known := slices.DeleteFunc(slices.Clone(from), reflect.Value.IsNil)
		if len(known) == 0 || len(known) < len(from) && (rule == "sum" || rule == "") {
			return
		}
		for i := range known {
			known[i] = known[i].Elem()
		}
		to.Set(reflect.New(to.Type().Elem()))
		merge(rule, to.Elem(), known)
	default:
		number(rule, to, from)
	}
}

// elements adds lists entry by entry, up to the length of the shortest list that is not nil.
func elements(to reflect.Value, from []reflect.Value) {
	lists := slices.DeleteFunc(slices.Clone(from), reflect.Value.IsNil)
	if len(lists) == 0 {
		return
	}
	n := lists[0].Len()
	for _, list := range lists {
		n = min(n, list.Len())
	}
	to.Set(reflect.MakeSlice(to.Type(), n, n))
	for i := range n {
		values := make([]reflect.Value, len(lists))
		for k, list := range lists {
			values[k] = list.Index(i)
		}
		merge("sum", to.Index(i), values)
	}
}

// each merges maps key by key. A rank without a key does not count for that key.
func each(rule string, to reflect.Value, from []reflect.Value) {
	if from[0].IsNil() {
		return
	}
	to.Set(reflect.MakeMap(to.Type()))
	for _, one := range from {
		for _, key := range one.MapKeys() {
			var values []reflect.Value
			for _, other := range from {
				if v := other.MapIndex(key); v.IsValid() {
					values = append(values, v)
				}
			}
			entry := reflect.New(to.Type().Elem()).Elem()
			merge(rule, entry, values)
			to.SetMapIndex(key, entry)
		}
	}
}

// entries merges the list entries that are equal in the fields keys. The result has the order of
// first occurrence.
func entries(keys string, to reflect.Value, from []reflect.Value) {
	order, parts := []string{}, map[string][]reflect.Value{}
	for _, list := range from {
		for i := range list.Len() {
			key := ""
			for name := range strings.SplitSeq(keys, ",") {
				key += fmt.Sprintln(list.Index(i).FieldByName(name))
			}
			if parts[key] == nil {
				order = append(order, key)
			}
			parts[key] = append(parts[key], list.Index(i))
		}
	}
	for _, key := range order {
		entry := reflect.New(to.Type().Elem()).Elem()
		fields(entry, parts[key])
		to.Set(reflect.Append(to, entry))
	}
}

// number adds numbers, or keeps the largest or the smallest. For booleans true is larger than
// false.
func number(rule string, to reflect.Value, from []reflect.Value) {
	if len(from) == 0 {
		return
	}
	to.Set(from[0])
	for _, v := range from[1:] {
		switch {
		case rule == "max" && less(to, v), rule == "min" && less(v, to):
			to.Set(v)
		case rule == "max", rule == "min":
		case to.CanInt():
			to.SetInt(to.Int() + v.Int())
		case to.CanFloat():
			to.SetFloat(to.Float() + v.Float())
		}
	}
}

func less(a, b reflect.Value) bool {
	switch {
	case a.CanInt():
		return a.Int() < b.Int()
	case a.CanUint():
		return a.Uint() < b.Uint()
	case a.CanFloat():
		return a.Float() < b.Float()
	case a.Kind() == reflect.String:
		return a.String() < b.String()
	}
	return b.Bool() && !a.Bool()
}

func alike(values []reflect.Value) bool {
	return !slices.ContainsFunc(values, func(v reflect.Value) bool {
		return !reflect.DeepEqual(v.Interface(), values[0].Interface())
	})
}

// contains reports whether list has a value that is deeply equal to v.
func contains(list, v reflect.Value) bool {
	for i := range list.Len() {
		if reflect.DeepEqual(list.Index(i).Interface(), v.Interface()) {
			return true
		}
	}
	return false
}
